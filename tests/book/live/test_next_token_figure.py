"""The live figure of the next token: its numbers are the library's, its tasks can be solved, by keys too."""

import re

import figures
import pytest
import torch
from browsers import in_one_browser

from exformer import generate, load_model
from exformer.generation.beam_search import beam_search
from exformer.generation.next_token import Continuation
from exformer.generation.sampling import Sampling
from exformer.nn.loss import nll
from exformer_lessons.language_model import live as next_token

# The library's shapes have tests of their own.
pytestmark = pytest.mark.usefixtures("unchecked_shapes")

VIEWS = ("loss", "sample", "beam", "cache")
SHIFTS = """() => new Promise((resolve) => {
    let sum = 0;
    const add = (each) => { sum += each.hadRecentInput ? 0 : each.value; };
    new PerformanceObserver((list) => list.getEntries().forEach(add))
        .observe({ type: "layout-shift", buffered: true });
    setTimeout(() => resolve(sum), 300);
})"""
NOTES = "() => [...document.querySelectorAll('.token')].map((each) => each.innerText.trim().split(/\\s+/))"
TEXT = "(css) => document.querySelector(css)?.textContent ?? ''"
SLIDE = """(n, value) => {
    const slider = document.querySelectorAll(".slider input")[n];
    slider.value = value;
    slider.dispatchEvent(new Event("input", { bubbles: true }));
}"""
WRITE = """(text) => {
    const field = document.querySelector("exformer-next-token textarea");
    field.value = text;
    field.dispatchEvent(new Event("input", { bubbles: true }));
}"""
SETTLED = """() => new Promise((resolve) => {
    const figure = document.querySelector("exformer-next-token");
    const look = () => (figure.waiting || !figure.done ? setTimeout(look, 10) : resolve(true));
    setTimeout(look, 30);
})"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Write a page for each first view."""
    folder = tmp_path_factory.mktemp("site")
    return {view: figures.write_page(folder, "next-token", view) for view in VIEWS}


@pytest.fixture(scope="module")
def library():
    """Load the model of the figure, and what begins its texts."""
    model, tokenizer, _ = load_model("shakespeare-bpe")
    begin = tokenizer.bos_id if model.config.begin_id is None else model.config.begin_id
    return model.eval(), tokenizer, begin


def opened(page, site, view, state=""):
    """Open a page and wait for the figure."""
    page.open(site[view].as_uri() + (f"#next-token={state}" if state else ""))
    page.wait("() => Boolean(document.querySelector('exformer-next-token.live'))")
    page.run(SETTLED)
    return page


def answer(page):
    page.run(SETTLED)
    return page.run(TEXT, ".answer")


def written(page, text):
    page.run(WRITE, text)
    page.run(SETTLED)


# --- What is shown is what the library computes


def test_the_loss_of_each_token_is_the_librarys(page, site, library) -> None:
    model, tokenizer, begin = library
    opened(page, site, "loss")
    for text in (next_token.TEXT, "Good night, good night! parting is such sweet sorrow", "Ümlaut 🙂 naïve"):
        written(page, text)
        ids = tokenizer.encode(text)
        nats = nll(model(torch.tensor([[begin, *ids]]))[:, :-1], torch.tensor([ids]))[0]
        shown = [float(note) for _, note in page.run(NOTES)]
        assert shown == pytest.approx(nats.tolist(), abs=0.0501), text
        assert f"Sum {nats.sum():.1f} nats, {nats.mean():.2f} per token" in page.run(TEXT, ".sum")
    assert page.messages == []


@in_one_browser
@pytest.mark.parametrize(
    ("settings", "options"),
    [
        ("1,40,1,0,5", {"top_k": 40, "seed": 5}),
        ("0.7,all,0.9,0,3", {"temperature": 0.7, "top_p": 0.9, "seed": 3}),
        ("1.4,all,1,0.05,11", {"temperature": 1.4, "min_p": 0.05, "seed": 11}),
        ("0,all,1,0,0", {"temperature": 0.0}),
    ],
)
def test_the_sampled_text_is_the_librarys_with_that_seed(page, site, library, settings, options) -> None:
    """And so are the numbers of tokens that are left, and the line of Python beneath."""
    model, tokenizer, begin = library
    opened(page, site, "sample", f"sample|{settings}|")
    prompt = "CORIOLANUS:\nI do beseech you"
    text = generate(model, tokenizer, prompt, max_new_tokens=16, **options)
    new = page.run("""() => {
        const figure = document.querySelector("exformer-next-token");
        return figure.tokenizer.decode(figure.view.all.slice(figure.ids.length));
    }""")
    assert new == text
    if options.get("temperature") != 0:
        ids = page.run("() => document.querySelector('exformer-next-token').view.all")
        logits = model(torch.tensor([[begin, *ids[:-1]]]))[0]
        named = {key: value for key, value in options.items() if key != "seed"}
        left = Sampling(**named).transform(logits).isfinite().sum(dim=-1).tolist()
        assert [int(note.replace(",", "")) for _, note in page.run(NOTES)] == left
    line = page.run(TEXT, "code.python")
    assert eval(line, {"generate": generate, "model": model, "tokenizer": tokenizer}) == text


@in_one_browser
def test_the_bars_hold_the_whole_vocabulary(page, site) -> None:
    """Before the cut and after it: those that are named and the others together are 1."""
    opened(page, site, "sample")
    widths = """() => ["was", "now"].map((name) =>
        [...document.querySelectorAll(`.sample .bar .${name}`)].map((bar) => parseFloat(bar.style.width)))"""
    for place in (6, 12, 2):  # of the slider of top-k
        page.run(SLIDE, 1, place)
        page.run(SETTLED)
        before, after = page.run(widths)
        assert sum(before) == pytest.approx(sum(after), rel=1e-3)


@in_one_browser
@pytest.mark.parametrize("beam", [1, 2, 3, 5])
def test_the_beams_are_the_librarys(page, site, library, beam) -> None:
    model, tokenizer, begin = library
    opened(page, site, "beam", f"beam|{beam}|")
    for text in ("CORIOLANUS:\nI", "MENENIUS:\nThe king"):
        written(page, text)
        prompt = torch.tensor([[begin, *tokenizer.encode(text)]])
        how = {"eos_id": tokenizer.eos_id, "max_new_tokens": 5, "length_penalty": 0.0}
        [found] = beam_search(Continuation(model), prompt, num_beams=beam, **how)
        value = page.run(TEXT, ".verdicts .best .value")
        assert float(value.replace("−", "-")) == pytest.approx(found.log_probability, abs=0.006)
        assert tokenizer.decode(found.ids).strip() in page.run(TEXT, ".verdicts .best").replace(" ↵ ", "\n")


@in_one_browser
def test_where_greedy_loses_and_where_the_beam_does(page, site) -> None:
    """The two examples: by more than five nats, and by more than one."""
    opened(page, site, "beam")
    values = """() => [...document.querySelectorAll(".verdicts .value")]
        .map((each) => Number(each.textContent.replace("−", "-")))"""
    greedy, beam = page.run(values)
    assert beam > greedy + 5
    written(page, "MENENIUS:\nThe king")
    greedy, beam = page.run(values)
    assert greedy > beam + 1


@in_one_browser
def test_the_multiplications_are_those_that_pytorch_counts(page, site, library) -> None:
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    model, tokenizer, begin = library
    opened(page, site, "cache")
    ids = torch.tensor([[begin, *tokenizer.encode("O, I do beseech you")]])
    cache = model.new_cache()
    model(ids[:, :-1], cache=cache)
    for cached, call in ((True, lambda: model(ids[:, -1:], cache=cache)), (False, lambda: model(ids))):
        with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
            call()
        count = """(n, cached) => {
            const { config } = document.querySelector("exformer-next-token").model;
            return exformer.multiplications(config, n, cached);
        }"""
        said = page.run(count, ids.size(1) - 1, cached)
        assert said == pytest.approx(
            counter.get_total_flops() / 2, rel=0.01
        )  # PyTorch counts masked scores too


@in_one_browser
def test_what_an_edit_changes_is_what_it_changes_in_the_library(page, site, library) -> None:
    """Layer 1: the edited column alone; above: everything from it on; before it nothing."""
    model, tokenizer, begin = library
    opened(page, site, "cache")
    moves = page.run("() => document.querySelector('exformer-next-token').view.moves")
    ids = [begin, *tokenizer.encode("O, I do beseech you")]
    edited = [*ids[:3], tokenizer.encode(" my")[0], *ids[4:]]
    caches = []
    for each in (ids, edited):
        caches.append(model.new_cache())
        model(torch.tensor([each]), cache=caches[-1])
    for layer, row in enumerate(moves):
        for position, moved in enumerate(row):
            dies = position == 3 or (position > 3 and layer > 0)
            assert (moved > 1e-6) == dies
            assert moved == 0 or moved > 0.01  # nothing between: the threshold decides nothing
    assert sum(moved > 1e-6 for row in moves for moved in row) == 19
    page.click(".line button")
    page.run(SETTLED)
    assert "19 of 36 entries have changed" in page.run(TEXT, ".cache .head")


# --- Tasks, by hand and by keys


def test_the_task_of_the_loss(page, site) -> None:
    opened(page, site, "loss")
    written(page, next_token.TEXT.replace("crest", "name"))
    assert answer(page).startswith("Not yet: −")
    written(page, next_token.TEXT.replace("coxcomb", "king"))
    assert answer(page).startswith("Solved: −28")
    assert "The 16 tokens before the change cost what they did (difference 0.0)" in answer(page)
    written(page, next_token.TEXT.replace("coxcomb", "king").replace("What", "Where"))
    assert answer(page) == ""
    page.click(".token")
    page.press("Escape")
    page.run(SETTLED)
    assert "Where is your crest? a king?" in page.run("() => document.querySelector('textarea').value")
    page.click(".buttons button:last-child")
    assert answer(page) == ""
    assert page.run("() => document.querySelector('textarea').value") == next_token.TEXT


@in_one_browser
def test_an_empty_text_shows_nothing_of_the_last_one(page, site) -> None:
    opened(page, site, "loss")
    written(page, "")
    assert page.run(TEXT, ".sum") == "Type a text."
    seen = "() => [...document.querySelectorAll('.head, .bars')].map((each) => each.offsetHeight)"
    assert page.run(seen) == [0, 0]


def test_a_large_perplexity_is_rounded(page, site) -> None:
    opened(page, site, "loss")
    written(page, "☃")
    assert re.search(r"perplexity (over a million|\d{1,3}(,\d{3})?|\d{1,3}\.\d)$", page.run(TEXT, ".sum"))


def test_the_task_of_sampling_by_keys_alone(page, site) -> None:
    """Top-k cannot do it, top-p can: Tab to the sliders, arrows move them."""
    opened(page, site, "sample")
    page.run("() => document.querySelector('exformer-next-token textarea').focus()")
    page.press("Tab", "Tab", "ArrowLeft")
    assert "as many everywhere" in answer(page)
    page.press("End")
    page.press("Tab", *["ArrowLeft"] * 10)
    assert answer(page).startswith("Solved: 87 at “␣b”, 1 at “es”")
    page.press("Escape")
    page.run(SETTLED)
    assert answer(page) == ""
    assert "top_k=40" in page.run(TEXT, "code.python")


def test_the_task_of_the_beam_by_keys_alone(page, site) -> None:
    opened(page, site, "beam")
    page.click(".buttons button:nth-child(2)")
    page.run(SETTLED)
    page.run("() => document.querySelector('.tree button').focus()")
    page.press("Enter")
    assert "still in the beam" in answer(page)
    first_out = "() => [...document.querySelectorAll('.node')].findIndex((each) => each.matches('.out'))"
    place = page.run(first_out)
    page.press(*["ArrowRight"] * place, "Enter")
    assert answer(page).startswith("Solved")
    assert page.run("() => document.activeElement.matches('.node.out')")


def test_the_task_of_the_cache_by_touch_and_by_keys(chromium, site) -> None:
    page = opened(chromium.page(width=390, height=844, touch=True), site, "cache")
    page.tap("[data-entry='3 8']")
    page.run(SETTLED)
    page.run("() => document.querySelector('[data-entry=\"0 8\"]').focus()")
    page.press("Enter")
    page.run(SETTLED)
    page.click(".line button")
    assert answer(page).startswith("2 of 3 right")
    page.tap("[data-entry='0 8']")
    page.run(SETTLED)
    page.click(".line button")
    assert answer(page).startswith("Solved")


@in_one_browser
def test_a_token_is_taken_by_hand_and_the_rest_follows(page, site) -> None:
    """Rewind to the first new token, take another one; no line of Python is promised then."""
    opened(page, site, "sample")
    before = [text for text, _ in page.run(NOTES)]
    page.click(".sample .bar:nth-child(2)")
    page.run(SETTLED)
    after = [text for text, _ in page.run(NOTES)]
    assert after[:9] == before[:9]
    assert (before[9], after[9]) == (",", ".")
    assert page.run(TEXT, "code.python").startswith("with a token chosen by hand")
    page.press("Escape")
    page.run(SETTLED)
    assert [text for text, _ in page.run(NOTES)] == before


# --- For everyone, and in trouble


@in_one_browser
def test_views_are_loaded_when_they_are_opened(page, site) -> None:
    def asked(part):
        return page.run("(css) => document.querySelectorAll(css).length", f"script[src*='/{part}-view.']")

    opened(page, site, "sample")  # that with which it begins at once
    assert [asked(view) for view in VIEWS] == [0, 1, 0, 0]
    for view in ("cache", "beam", "sample", "cache"):
        page.click(f"#next-token-{view}")
        page.run(SETTLED)
        assert (
            page.run("() => document.querySelector('exformer-next-token .panel').className")
            == f"panel {view}"
        )
    assert [asked(view) for view in VIEWS] == [0, 1, 1, 1]


@in_one_browser
def test_a_view_that_does_not_come_is_told(page, site) -> None:
    rename = """(name, other) => {
        const { dataset } = document.querySelector("exformer-next-token");
        dataset.later = dataset.later.replace(name, other);
    }"""
    opened(page, site, "loss")
    page.run(rename, "/beam-view.", "/gone-view.")
    page.click("#next-token-beam")
    page.run(SETTLED)
    assert page.run(TEXT, ".note") == "A script of this figure could not be loaded: is the page whole?"
    page.run(rename, "/gone-view.", "/beam-view.")
    page.click("#next-token-beam")
    page.run(SETTLED)
    assert page.run("() => document.querySelector('.panel').className") == "panel beam"


@pytest.mark.parametrize("view", VIEWS)
def test_axe_and_shifts(chromium, site, view) -> None:
    page = chromium.page(width=390, height=844, touch=True)
    opened(page, site, view)
    assert page.run(SHIFTS) < 0.001
    assert figures.faults(page) == []
    page.close()


def test_each_view_fits_a_phone(chromium, site) -> None:
    page = opened(chromium.page(width=390, height=844, touch=True), site, "loss")
    for view in reversed(VIEWS):
        page.tap(f"#next-token-{view}")
        page.run(SETTLED)
        assert page.run("() => document.documentElement.scrollWidth <= innerWidth")
    page.close()


@pytest.mark.parametrize("view", VIEWS)
def test_hostile_texts_are_answered_in_a_sentence(page, site, view) -> None:
    opened(page, site, view)
    for text in (
        "",
        "a" * 5000,
        "\n" * 100,
        "日本語 🏴‍☠️ \u0000\u200d\ufeff",
        "<img src=x onerror=alert(1)>",
        "\ud800",
    ):
        written(page, text)
        note = page.run(TEXT, ".note")
        shown = page.run(TEXT, ".next-token")
        assert not re.search(r"undefined|NaN|\bnull\b|not a function|Cannot", shown), text
        assert note == "" or note.endswith((".", "shown.")), note
    assert "half a character" in page.run(TEXT, ".note")
    written(page, "O, I do beseech you")
    assert page.run(TEXT, ".note") == ""
    assert page.messages == []


@pytest.mark.parametrize("state", ["nonsense", "sample|9e9,-4,NaN,,|", "beam|99|x", "__proto__|x|y"])
def test_garbled_addresses_are_clamped(page, site, state) -> None:
    opened(page, site, "sample", state)
    assert page.run("() => document.querySelectorAll('.panel > *').length") > 2
    assert page.messages == []


def test_the_address_keeps_the_state(page, site) -> None:
    opened(page, site, "loss")
    page.click("#next-token-sample")
    page.run(SETTLED)
    page.run(SLIDE, 2, 0.8)
    page.run(SETTLED)
    page.wait("() => location.hash.includes('0.8')")
    address = page.run("() => location.href")
    shown = page.run(NOTES)
    page.open("about:blank")
    page.open(address)
    page.wait("() => Boolean(document.querySelector('exformer-next-token.live'))")
    page.run(SETTLED)
    assert page.run(NOTES) == shown


@in_one_browser
def test_a_change_is_said_once(page, site) -> None:
    opened(page, site, "loss")
    page.click(".token")
    said = page.wait("() => document.querySelector('exformer-next-token [aria-live]').textContent")
    assert said.startswith("At the start the model expected: The text has “K”: rank")


def test_the_still_picture_says_what_the_figure_first_shows(library) -> None:
    model, tokenizer, begin = library
    ids = tokenizer.encode(next_token.TEXT)
    assert tuple(tokenizer.decode([each]) for each in ids) == next_token.PIECES
    nats = nll(model(torch.tensor([[begin, *ids]]))[:, :-1], torch.tensor([ids]))[0]
    assert pytest.approx(nats.tolist(), abs=0.051) == next_token.NATS
    before = tokenizer.encode(next_token.BEFORE)
    p = model(torch.tensor([[begin, *before]]))[0, -1].softmax(dim=-1)
    *named, (others, rest) = next_token.EXPECTED.items()
    best = p.argsort(descending=True)[:5].tolist()
    assert [tokenizer.decode([each]) for each in best] == [name for name, _ in named]
    assert [share for _, share in named] == pytest.approx(
        p.sort(descending=True).values[:5].tolist(), abs=0.001
    )
    assert rest == pytest.approx(1 - sum(share for _, share in named), abs=0.001)
    assert others == f"{tokenizer.vocab_size - 5:,} others"
    drawn = next_token.FIGURE.still().svg
    for said in ("3.4", "2.7", "7.2", "6.7", "2.6", "9.2", "0.82", "0.13"):
        assert f">{said}<" in drawn, said
        assert said in next_token.FIGURE.alt, said
