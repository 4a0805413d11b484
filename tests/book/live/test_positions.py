"""The live figure on positions: its words hold, its numbers are the library's, hands reach all of it."""

import json
import re

import figures
import position_heads
import pytest
import torch
from browsers import in_one_browser

from exformer_lessons.positional_encoding.live import CODES, FIGURE, N_POSITIONS, scores

SHOWS = ("positions",)
START = {"no code": -1.6, "sinusoidal": 8.9, "rotary": 37.7}
PLACES = "() => ['query', 'key'].map((each) => document.querySelector('.handle.' + each).ariaValueNow)"
SHOWN = """() => Object.fromEntries([...document.querySelectorAll("exformer-positions .lane")].map((lane) => [
    lane.dataset.code, [".score", ".was"].map((css) => lane.querySelector(css).textContent)]))"""


# --- What the caption says ---


def of(code, offset):
    """Return the scores of all pairs with an offset, query minus key."""
    return scores(code).diagonal(-offset)


def before_is_highest(code):
    """Return for each query from position 1 whether the previous key has the highest score."""
    highest = scores(code).argmax(dim=1)[1:]
    return highest == torch.arange(N_POSITIONS - 1)


def test_the_rotary_score_stays_when_both_move() -> None:
    """To within the last digits, at every offset; and when one moves alone it does not."""
    for offset in range(1 - N_POSITIONS, N_POSITIONS):
        assert of("rotary", offset).max() - of("rotary", offset).min() < 1e-9
    assert scores("rotary")[6].max() - scores("rotary")[6].min() > 50


def test_without_a_code_nothing_changes() -> None:
    """Nor does an exchange of query and key."""
    assert scores("no code").max() - scores("no code").min() < 1e-12


def test_the_sinusoidal_score_varies_when_both_move() -> None:
    """Of the token before, inside the positions of training and after them; and within 40, too."""
    for part in (of("sinusoidal", 1)[:11], of("sinusoidal", 1)[11:]):
        assert part.max() - part.min() > 4
    for offset in range(-40, 41):
        assert of("sinusoidal", offset).max() - of("sinusoidal", offset).min() > 3, offset


def test_where_the_token_before_is_highest() -> None:
    """Inside the positions of training for both codes, after them for the rotary one alone."""
    sinusoidal, rotary = before_is_highest("sinusoidal"), before_is_highest("rotary")
    inside, after = sinusoidal[:11].sum().item(), sinusoidal[11:].sum().item()
    assert (inside, after, len(sinusoidal[11:])) == (11, 2, 68)
    assert rotary.all()


def test_what_is_exchanged() -> None:
    """Query 6 and key 5 exchanged: both codes notice, no code does not."""
    changes = {code: abs(scores(code)[5, 6] - scores(code)[6, 5]).item() for code in CODES}
    assert changes["no code"] < 1e-12 < 3 < min(changes["sinusoidal"], changes["rotary"])


def test_the_far_keys_that_solve_the_task() -> None:
    """More than 40 positions away, only where the first hand has come round ten times and the second once."""
    near = of("rotary", 1)[0].item()
    high = {n - 79: of("rotary", n - 79)[0].item() / near for n in range(159)}
    assert {offset for offset, share in high.items() if abs(offset) > 40 and share >= 0.95} == {-62, 64}
    assert high[-62] > 0.98
    assert high[63] < 0.945
    for w in (1, 0.1):
        assert 63 * w / (2 * torch.pi) == pytest.approx(10 * w, rel=0.003)


def test_the_still_picture_says_what_is_so() -> None:
    """The numbers of the alternative text are in the picture."""
    written = FIGURE.still().svg
    for said in re.findall(r"−?\d+\.\d", FIGURE.alt):
        assert f">{said}<" in written, said


def test_the_numbers_are_those_of_the_lesson() -> None:
    """The lesson trains its readers as when the heads were written; the page has the same numbers."""
    kept = json.loads(position_heads.TO.read_text(encoding="utf-8"))
    again = "the readers have changed: run book/_tools/position_heads.py"
    assert kept.pop("code") == position_heads.code_hash(position_heads.lesson()), again
    assert position_heads.SCRIPT.read_text(encoding="utf-8") == position_heads.script(kept)


# --- The figure in a page ---


def values(page):
    """Return the score of each code that is on the screen, and what is said beside it."""
    return {code: (float(score.replace("−", "-")), was) for code, (score, was) in page.run(SHOWN).items()}


def test_the_page_computes_what_the_library_does(page, site) -> None:
    """All scores of all codes, in both browsers."""
    figures.opened(page, site)
    for code in CODES:
        script = "(code) => new exformer.PositionHead(code, exformer.positionHeads[code]).scores"
        found = torch.tensor(page.run(script, code), dtype=torch.float64)
        torch.testing.assert_close(found, scores(code), atol=5e-5, rtol=0)


def test_first_state(page, site) -> None:
    """Before any touch there are scores, and no console message."""
    figures.opened(page, site)
    assert values(page) == {code: (score, "") for code, score in START.items()}
    assert page.messages == []


def test_keys_alone_move_both_and_one(page, site) -> None:
    """Query, both, key, by Tab; together the rotary score stays, apart it changes; Escape goes back."""
    figures.opened(page, site)
    page.press("Tab", "Tab", *["ArrowRight"] * 14)
    now = values(page)
    assert now["rotary"] == (37.7, "as before")
    assert now["no code"] == (-1.6, "as before")
    assert now["sinusoidal"] == (pytest.approx(scores("sinusoidal")[20, 19].item(), abs=0.06), "was 8.9")
    page.press("Tab", "ArrowLeft")
    now = values(page)
    assert now["rotary"] == (pytest.approx(scores("rotary")[20, 18].item(), abs=0.06), "was 37.7")
    assert now["no code"] == (-1.6, "as before")
    said = "(words) => document.querySelector('exformer-positions [aria-live]').textContent.includes(words)"
    page.wait(said, "key at 18, offset 2")
    page.wait("() => location.hash === '#positions=20%2C18'")
    page.press("Escape")
    assert values(page) == {code: (score, "") for code, score in START.items()}
    page.wait("() => location.hash === ''")


@in_one_browser
def test_nothing_leaves_the_text(page, site) -> None:
    """Ends are ends, and what is moved together keeps its offset there."""
    figures.opened(page, site)
    page.press("Tab", "Tab", "Home", "ArrowLeft")
    assert page.run("() => document.querySelector('.handle.key').ariaValueNow") == "0"
    page.press("End", "PageUp")
    found = page.run("() => [...document.querySelectorAll('.handle')].map((each) => each.ariaValueNow)")
    assert found == ["79", "79", "78"]
    assert values(page)["rotary"][0] == 37.7


def test_a_mouse_drags(page, site) -> None:
    """The handle of both; then the key's lane is pressed, and the key comes."""
    figures.opened(page, site)
    where = """(css) => {
        const { left, top, width, height } = document.querySelector(css).getBoundingClientRect();
        const step = document.querySelector(".ruler .inner").clientWidth / 79;
        return [left + width / 2, top + height / 2, step];
    }"""
    x, y, step = page.run(where, ".handle.both")
    page.drag((x, y), (x + 30 * step, y))
    assert page.run("() => document.querySelector('.handle.query').ariaValueNow") == "36"
    assert values(page)["rotary"] == (37.7, "as before")
    x, y, _ = page.run(where, ".handle.key")
    page.drag((x + 20 * step, y), (x + 22 * step, y))
    assert page.run("() => document.querySelector('.handle.key').ariaValueNow") == "57"


@in_one_browser
def test_the_task_is_solved_and_not_by_less(page, site) -> None:
    """At −62 it is, one position on it is not; on the way it says how high the score is."""
    figures.opened(page, site)
    page.press("Tab", "Tab", "Tab", *["PageUp"] * 6, "ArrowRight", "ArrowRight")
    answer = "() => document.querySelector('.answer').textContent"
    assert page.run(answer).startswith("At offset −61 the rotary score is")
    page.press("ArrowRight")
    assert page.run(answer).startswith("Found: offset −62 scores 37.3.")
    assert "10 times and the second once" in page.run(answer)


@in_one_browser
def test_exchange_is_noticed_with_a_code_only(page, site) -> None:
    """A press exchanges the positions of query and key, the next one brings them back."""
    figures.opened(page, site)
    page.click(".exchange")
    assert [was for _, was in values(page).values()] == ["as before", "was 8.9", "was 37.7"]
    page.click(".exchange")
    assert {code: score for code, (score, _) in values(page).items()} == START


@pytest.mark.parametrize(
    ("given", "places"),
    [("6,68", "6 68"), ("6%2C68", "6 68"), ("999,-3", "79 0")]
    + [(garbled, "6 5") for garbled in ("a,b", "7", ",", "%E0%A4", "1e400,2", "x" * 5000)],
    ids=lambda each: each[:8],
)
def test_any_address_is_a_placement(page, site, given, places) -> None:
    """What is garbled is the start, what is too far is the end."""
    figures.opened(page, site, f"positions={given}")
    assert page.run(PLACES) == places.split()
    assert page.messages == []


def test_a_finger_at_390_pixels(chromium, site) -> None:
    """Nothing is wider than a phone, handles are large enough, a finger drags both, a tap moves the key."""
    page = chromium.page(width=390, height=844, touch=True)
    figures.opened(page, site)
    assert page.run("() => document.documentElement.scrollWidth") <= 390
    box = "(css) => document.querySelector(css).getBoundingClientRect().toJSON()"
    handles = [page.run(box, f".handle.{name}") for name in ("query", "both", "key")]
    assert min(min(each["width"], each["height"]) for each in handles) >= 44
    x, y = (handles[1][low] + handles[1][size] / 2 for low, size in (("left", "width"), ("top", "height")))
    step = page.run("() => document.querySelector('.ruler .inner').clientWidth / 79")
    page.swipe((x, y), (x + 20 * step, y))
    assert page.run(PLACES) == ["26", "25"]
    assert values(page)["rotary"] == (37.7, "as before")
    page.tap(".way-of[data-moves=key]")
    assert page.run(PLACES)[1] in ("39", "40")
    page.close()


@pytest.mark.parametrize(("width", "height"), [(1280, 900), (820, 900), (390, 844), (320, 700)])
def test_nothing_shifts(chromium, site, width, height) -> None:
    """What is reserved is as high as the figure, in every state."""
    page = chromium.page(width=width, height=height)
    figures.opened(page, site)
    size = """() => {
        const figure = document.querySelector("exformer-positions");
        return [figure.offsetHeight, parseFloat(getComputedStyle(figure).minHeight)];
    }"""
    begun, reserved = page.run(size)
    assert begun == pytest.approx(reserved, abs=1)
    page.run("() => document.querySelector('.handle.key').focus()")
    page.press(*["PageUp"] * 6, *["ArrowRight"] * 3)
    assert page.run(size)[0] == begun
    page.close()
