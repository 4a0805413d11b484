"""The soft lookup that a reader drags: its numbers are PyTorch's, and its task teaches what is so."""

import math
import random

import figures
import pytest
import torch
from browsers import in_one_browser

from exformer import scaled_dot_product_attention
from exformer_lessons.live import live_figure
from exformer_lessons.self_attention.live import COUNTS, VECTORS, new_bank

RNG = random.Random(3)
CROSS = (3, 3)
ATTEND = """([q, keys, values, counts]) => {
    const { scores, weights, mean } = exformer.lookup.attend(q, keys, values, counts);
    return [scores, weights, mean];
}"""
SHOWN = """() => [...document.querySelectorAll('.scores tbody tr')].map((row) =>
    [...row.children].map((each) => each.textContent).filter(Boolean).join(' '))"""
TOLD = "() => document.querySelector('.told').innerText.split('\\n')"
ANSWERS = "() => [...document.querySelectorAll('.answer')].map((each) => each.textContent)"
SOLVED = "() => [...document.querySelectorAll('.answer')].map((each) => each.classList.contains('solved'))"
#: The middle of a handle, and how many pixels a unit of the plane has.
HANDLE = """(moves) => {
    const box = document.querySelector(`.handle[data-moves="${moves}"]`).getBoundingClientRect();
    const unit = document.querySelector('.plane').getBoundingClientRect().width / 10;
    return [box.left + box.width / 2, box.top + box.height / 2, unit];
}"""
FIRST = ["river 5.0 0.689", "bank 4.0 0.253", "swam 2.0 0.034", "five others 0.0 0.023"]
SHOWS = ("lookup",)


def drag(page, moves, across, up):
    """Drag a handle by so many units of the plane."""
    x, y, unit = page.run(HANDLE, moves)
    page.drag((round(x), round(y)), (round(x + across * unit), round(y - up * unit)))


def expand(vectors, counts):
    """Write a word that stands for several as many times, as (1, word, 2)."""
    tensor = torch.tensor(vectors, dtype=torch.float64)
    return tensor.repeat_interleave(torch.tensor(counts), dim=0)[None]


# --- What it computes ---


def test_weights_and_mean_are_those_of_pytorch(page, site) -> None:
    """Random keys, values and queries, some so long that an exponential by itself would overflow."""
    figures.opened(page, site)
    for length in [1, 6, 6, 6, 100, 5_000] * 5:
        n = RNG.randint(1, 6)
        q = [RNG.uniform(-length, length) for _ in range(2)]
        keys, values = ([[RNG.uniform(-3, 6) for _ in range(2)] for _ in range(n)] for _ in range(2))
        counts = [RNG.randint(1, 6) for _ in range(n)]
        scores, weights, mean = page.run(ATTEND, [q, keys, values, counts])
        query = torch.tensor(q, dtype=torch.float64)
        expected = torch.tensor(keys, dtype=torch.float64) @ query / 2
        torch.testing.assert_close(torch.tensor(scores, dtype=torch.float64), expected)
        sides = torch.nn.functional.scaled_dot_product_attention(
            query[None, None], expand(keys, counts), expand(values, counts), scale=0.5
        )
        assert mean == pytest.approx(sides[0, 0].tolist(), abs=1e-6)
        shares = (expand(keys, counts)[0] @ query / 2).softmax(dim=0).split(counts)
        assert weights == pytest.approx([float(share.sum()) for share in shares], abs=1e-6)


@in_one_browser
def test_the_first_state_is_the_lessons(page, site) -> None:
    """Of all four columns and eight words, as the lesson computes it: the two others add nothing."""
    figures.opened(page, site)
    assert page.run(SHOWN) == FIRST
    assert page.run(TOLD) == ["query (2.0, 2.0), length 2.8", "new bank (4.0, 0.5)"]
    x = torch.zeros(8, 4)
    x[1], x[4], x[7] = (
        torch.tensor([2, 0, 2.0, 0]),
        torch.tensor([5.0, 0, 0, 0]),
        torch.tensor([2.0, 2, 0, 0]),
    )
    y, weights = scaled_dot_product_attention(x[None, 7:], x[None], x[None])
    ours, mean = new_bank("river")
    assert mean.tolist() == pytest.approx(y[0, 0, :2].tolist(), abs=1e-6)
    assert ours[:3].tolist() == pytest.approx(weights[0, 0, [4, 7, 1]].tolist(), abs=1e-6)


@in_one_browser
@pytest.mark.parametrize("n", [0, 1])
def test_picture_and_page_have_the_same_words(page, site, n) -> None:
    """The still picture's vectors are where the page's keys and values begin."""
    figures.opened(page, site)
    page.click(f"[data-sentence='{n}']")
    noun = ["river", "cash"][n]
    assert page.run("() => document.querySelector('exformer-lookup').values") == [
        list(vector) for vector in VECTORS[noun].values()
    ]
    weights, mean = new_bank(noun)
    found = [row.rsplit(" ", 2) for row in page.run(SHOWN)]
    assert [(word, weight) for word, _, weight in found] == [
        (word, f"{weight:.3f}") for word, weight in zip(VECTORS[noun], weights.tolist(), strict=True)
    ]
    assert page.run(TOLD)[1] == "new bank ({:.1f}, {:.1f})".format(*mean.tolist())


@in_one_browser
def test_the_shaded_area_holds_all_values(page, site) -> None:
    """Its corners are values, turn one way, and no value is outside; the mean is inside, too."""
    figures.opened(page, site)
    for _ in range(40):
        points = [[round(RNG.uniform(-3, 6), 1) for _ in range(2)] for _ in range(RNG.randint(3, 6))]
        corners = page.run("(points) => exformer.lookup.hull(points)", points)
        assert all(corner in points for corner in corners)
        mean = page.run(ATTEND, [[1, -2], points, points, [1] * len(points)])[2]
        for (ax, ay), (bx, by) in zip(corners, corners[1:] + corners[:1], strict=True):
            assert min((bx - ax) * (y - ay) - (by - ay) * (x - ax) for x, y in [*points, mean]) > -1e-9


# --- What is dragged ---


def test_a_dragged_query_moves_weights_and_mean(page, site) -> None:
    """By a mouse: from bank's vector to the right, where river gains."""
    figures.opened(page, site)
    drag(page, "q", 1, -2)
    assert page.run(SHOWN)[:2] == ["river 7.5 0.976", "bank 3.0 0.011"]
    assert page.run(TOLD) == ["query (3.0, 0.0), length 3.0", "new bank (4.9, 0.0)"]
    assert page.messages == []


@in_one_browser
def test_a_dragged_value_moves_the_mean_alone(page, site) -> None:
    """River's value goes up by 2: scores and weights stay, the mean rises by 0.689 of it."""
    figures.opened(page, site)
    drag(page, 0, 0, 2)
    assert page.run(SHOWN) == FIRST
    assert page.run(TOLD)[1] == "new bank (4.0, 1.9)"
    drag(page, 2, 0, 3)
    assert page.run(TOLD)[1] == "new bank (4.0, 2.0)"


@in_one_browser
def test_nothing_is_dragged_out_of_the_plane(page, site) -> None:
    """Far beyond the edge a handle stays at it."""
    figures.opened(page, site)
    drag(page, "q", 9, -6)
    assert page.run(TOLD)[0] == "query (6.0, −3.0), length 6.7"


def test_keys_alone(page, site) -> None:
    """Tab finds the values, then the query; arrows move by 0.1, with Shift by 1; the change is announced."""
    figures.opened(page, site)
    page.press("Tab")
    for _ in range(4):
        assert page.run("() => document.activeElement.ariaLabel").startswith("value of")
        page.press("Tab")
    assert page.run("() => document.activeElement.ariaLabel") == "query"
    page.press("ArrowRight", "ArrowUp", "ArrowUp", "ArrowLeft", "ArrowLeft", "ArrowDown")
    assert page.run("() => document.activeElement.ariaValueText") == "water 1.9, money 2.1"
    page.run("""() => document.activeElement.dispatchEvent(
        new KeyboardEvent('keydown', { key: 'ArrowDown', shiftKey: true, bubbles: true }))""")
    assert page.run(TOLD)[0] == "query (1.9, 1.1), length 2.2"
    page.wait("() => location.hash === '#lookup=0%2C19%2C11%2C50%2C0%2C20%2C20%2C20%2C0%2C0%2C0'")
    said = page.wait("() => document.querySelector('exformer-lookup [aria-live]').textContent")
    assert said.startswith("Weights: river ")


@in_one_browser
def test_the_other_sentence_keeps_the_query(page, site) -> None:
    """Its values begin at their keys; the start is that of the first sentence."""
    figures.opened(page, site)
    drag(page, "q", 1, 1)
    drag(page, 0, 0, 2)
    page.click("[data-sentence='1']")
    assert page.run(SHOWN) == ["cash 7.5 0.815", "bank 6.0 0.182", "six others 0.0 0.003"]
    assert page.run("() => document.querySelectorAll('.handle.value:not([hidden])').length") == 3
    page.click(".again")
    assert page.run(SHOWN) == FIRST


# --- The task ---


def test_a_short_query_is_never_sharp() -> None:
    """No query as long as bank's vector gives the noun 0.99; one half longer does."""
    for noun in VECTORS:
        keys = torch.tensor(list(VECTORS[noun].values()))
        counts = torch.tensor([COUNTS.get(word, 1) for word in VECTORS[noun]])
        angles = torch.linspace(0, 2 * math.pi, 2_000)
        for length, sharp in ((math.sqrt(8), False), (1.5 * math.sqrt(8), True)):
            queries = length * torch.stack([angles.cos(), angles.sin()], dim=1)
            weights = (queries @ keys.T / 2 + counts.log()).softmax(dim=1)
            assert bool((weights[:, 0] >= 0.99).any()) == sharp


def test_no_query_reaches_the_cross() -> None:
    """While the values are at home, the mean stays more than 1.3 away from it."""
    queries = torch.cartesian_prod(torch.linspace(-60, 60, 241), torch.linspace(-60, 60, 241))
    for noun in VECTORS:
        keys = torch.tensor(list(VECTORS[noun].values()))
        means = (queries @ keys.T / 2).softmax(dim=1) @ keys
        assert 1.3 < float((means - torch.tensor(CROSS)).norm(dim=1).min()) < 1.6


@in_one_browser
def test_both_tasks_are_solved_and_not_by_less(page, site) -> None:
    """The query sharpens, then comes near the cross and is told where to look; a value gets there."""
    figures.opened(page, site)
    assert page.run(SOLVED) == [False, False]
    drag(page, "q", 1.5, -1.9)
    assert page.run(ANSWERS)[0] == "Now river has 0.988."
    assert page.run(SOLVED) == [False, False]
    drag(page, "q", 0.1, 0)
    assert page.run(SHOWN)[0] == "river 9.0 0.990"
    assert page.run(SOLVED) == [True, False]  # though it is 0.9897: what is shown counts
    drag(page, "q", -1.6, 1.9)
    assert page.run(ANSWERS)[1] == "The new bank is 2.7 away from the cross."
    drag(page, "q", 0.5, 4)
    assert page.run(ANSWERS)[1].endswith("What moves its corners?")
    page.click(".again")
    assert page.run(SOLVED) == [False, False]
    drag(page, 0, -1.5, 3.3)
    assert page.run(SOLVED) == [False, False]
    drag(page, 0, 0, 0.3)
    assert page.run(SOLVED) == [False, True]
    assert page.run(ANSWERS)[1].startswith("There: a mean never leaves the shaded area")
    drag(page, 0, -2, -2)
    assert page.run(SOLVED) == [False, True]  # once found, it stays found


# --- The page around it ---


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("1,20,20,0,50,20,20,0,0", "cash 5.0 0.710"),
        ("0%2C30%2C0%2C50%2C0%2C20%2C20%2C20%2C0%2C0%2C0", "river 7.5 0.976"),
        ("0,999,-999,50,0,20,20,20,0,0,0", "river 15.0 1.000"),
        *[
            (garbled, FIRST[0])
            for garbled in ("2,1,1", "0,1", "0,a,b,1,1,1,1,1,1,1,1", "-1", "0" + ",1e999" * 10)
        ],
        ("length,1,1", FIRST[0]),
        ("9," * 900, FIRST[0]),
    ],
    ids=lambda each: str(each)[:12],
)
def test_any_address_is_a_state(page, site, given, shown) -> None:
    """What is garbled is the start, what is too far is the edge."""
    figures.opened(page, site, f"lookup={given}")
    assert page.run(SHOWN)[0] == shown
    assert page.messages == []


def test_a_finger_drags_a_handle_and_scrolls_beside(chromium, site) -> None:
    """At 390 pixels: handles are large enough, the page stays while one is dragged, and scrolls elsewhere."""
    page = chromium.page(width=390, height=700, touch=True)
    figures.opened(page, site)
    box = "(css) => document.querySelector(css).getBoundingClientRect().toJSON()"
    for css in (".handle.query", ".handle.value", ".again", "[data-sentence]"):
        assert page.run(box, css)["height"] >= 30, css
    assert page.run(box, ".handle.query")["width"] >= 44
    x, y, unit = page.run(HANDLE, "q")
    page.swipe((x, y), (x + unit, y + 2 * unit))
    page.raw.wait_for_timeout(300)  # a page that scrolls has scrolled by then
    assert page.run(TOLD)[0] == "query (3.0, 0.0), length 3.0"
    assert page.run("() => scrollY") == 0
    plane = page.run(box, ".plane")
    x, y = plane["left"] + 20, plane["top"] + 120
    page.swipe((x, y), (x, y - 100))
    page.wait("() => scrollY > 50")
    page.close()


@pytest.mark.parametrize(("width", "height"), [(1280, 900), (820, 900), (390, 844), (320, 700)])
def test_nothing_shifts(chromium, site, width, height) -> None:
    """What is reserved is enough in every state, and no state is wider than the page."""
    page = chromium.page(width=width, height=height)
    size = """() => [
        document.querySelector("exformer-lookup").offsetHeight, document.documentElement.scrollWidth,
        document.querySelector(".live-stage").offsetHeight,
        document.querySelector(".task").offsetTop]"""
    states = [
        "",
        "0,60,-20,35,36,20,20,20,0,0,0",
        "0,60,60,60,60,-30,60,60,-30,-30,-30",
        "1,20,30,0,50,20,20,0,0",
    ]
    states += ["0,25,25,50,0,20,20,20,0,0,0", "1,-30,60,33,33,33,33,33,33", "0,50,0,30,30,30,30,30,30,30,30"]
    found = [figures.opened(page, site, f"lookup={state}").run(size) for state in states]
    assert len({each[0] for each in found}) == 1, found
    assert len({each[3] for each in found}) == 1, found
    assert max(each[1] for each in found) <= width
    page.close()


def test_its_still_picture_is_the_lessons() -> None:
    """Both new vectors of bank, in the picture and in its words."""
    figure = live_figure("lookup").figure
    svg = figure.still().svg
    for noun, shown in (("river", "4.0, 0.5"), ("cash", "0.5, 4.1")):
        assert ", ".join(f"{x:.1f}" for x in new_bank(noun)[1].tolist()) == shown
        assert f"({shown})" in svg
        assert shown in figure.alt
