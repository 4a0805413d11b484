"""Recurrence against attention, live: its words hold, its translations are the library's, hands reach it."""

import random
import re
from collections import Counter

import figures
import live_grammar
import pytest
import recurrence_evidence as evidence
from browsers import in_one_browser

from exformer.corpora.english_italian.grammar import derive
from exformer.corpora.english_italian.parser import parse
from exformer_lessons.checkpoints import load_lesson_model
from exformer_lessons.first_attention.live import ATTENTION, FIGURE, FIRST, ONE_VECTOR
from exformer_lessons.first_attention.two_translators import LENGTHS, content_words, sample_pair

SHOWN = """() => Object.fromEntries(["a", "source", "b"].map((key) => [key,
    [...document.querySelectorAll(`exformer-recurrence .words.${key} li:not(.free) b`)]
        .map((word) => word.textContent).join(" ")]))"""
TEXT = "(css) => document.querySelector(`exformer-recurrence ${css}`).textContent"
SLIDE = """(n) => { const slider = document.querySelector("exformer-recurrence input");
    slider.value = n; slider.dispatchEvent(new Event("input", { bubbles: true })); }"""
CHOOSE = """(slot, text) => { const choice = document.querySelector(`[data-slot="${slot}"]`);
    choice.value = [...choice.options].find((option) => option.text === text).value;
    choice.dispatchEvent(new Event("change", { bubbles: true })); }"""
SHOWS = ("recurrence",)


@pytest.fixture(scope="module")
def models():
    return {"a": load_lesson_model(ONE_VECTOR), "b": load_lesson_model(ATTENTION)}


# --- What the caption says ---


def said(pattern):
    """Return the numbers that the caption has where a pattern finds them."""
    return [float(number) for number in re.search(pattern, FIGURE.caption, re.S).groups()]


def test_which_nouns_are_noticed(models) -> None:
    """In sentences of 12 words: by D always, by C the less the later they stand."""
    shares = said(r"in (\d+)% of 1,000 sentences.*in (\d+)% if the second.*in (\d+)% if the\s+third")
    random.seed(0)
    found = [evidence.notices(models["a"], 12, part)[0] for part in ("subject", "object", "place")]
    assert found == [pytest.approx(share / 100, abs=0.07) for share in shares]
    assert found[0] + 0.2 < found[1]
    assert found[1] < found[2]
    for part in ("subject", "object", "place"):
        assert evidence.notices(models["b"], 12, part, 200) == (0, pytest.approx(1, abs=0.01))


def test_short_and_long_sentences(models) -> None:
    """About half of three words; none of twelve; and the task has solutions."""
    random.seed(1)
    assert "of three words C gets about half right" in FIGURE.caption
    assert 0.38 < evidence.right(models["a"], 3) < 0.66
    assert evidence.right(models["a"], 12) < 0.01
    assert 0.1 < evidence.right(models["a"], 5, 1000) < 0.4
    assert 0 < evidence.right(models["a"], 6, 1000) < 0.08
    assert evidence.right(models["b"], 3) > 0.93
    assert evidence.right(models["b"], 12) > 0.99


def test_the_seeds_of_the_curves(models) -> None:
    """As the cards have them: C's fall for each seed, D's do not."""
    for name, low, high in (("a", 0.3, 0.5), ("b", 0.99, 1)):
        scores = models[name].card["scores"]
        by_seed = list(zip(*(scores[length]["content by seed"] for length in LENGTHS), strict=True))
        assert len(by_seed) == 5
        assert by_seed[0] == tuple(scores[length]["content"] for length in LENGTHS)
        assert all(low < shares[-1] <= high and shares[-1] <= shares[0] for shares in by_seed)


def test_the_still_picture(models) -> None:
    """It has the words of both translations."""
    svg = FIGURE.still().svg
    for found in models.values():
        for word in evidence.translations(found, [parse(FIRST)])[0]:
            assert f">{word}<" in svg
    written = evidence.translations(models["a"], [parse(FIRST)])[0]
    target = derive(parse(FIRST)).target.split()
    assert written[:6] == target[:6]  # as the alternative text says
    assert not {*written[6:]} & {*target}
    assert len(FIRST.split()) == 11


# --- The grammar in the page ---


def test_the_words_are_the_library_s() -> None:
    written = live_grammar.FILE.read_text(encoding="utf-8")
    assert written == live_grammar.script(), "run book/_tools/live_grammar.py"


def test_the_grammar_is_the_library_s(page, site) -> None:
    """Of thousands of sentences; and what the grammar does not write is refused."""
    figures.opened(page, site)
    random.seed(2)
    sentences = {sample_pair().source for _ in range(3000)}
    pairs = [derive(parse(source)) for source in sorted(sentences)]
    found = page.run(
        """(sources) => sources.map((source) => {
            const { parse, derive } = exformer.englishItalian;
            const { source: words, target, content } = derive(parse(source));
            return [words.join(" "), target.join(" "), content.join(" ")];
        })""",
        [pair.source for pair in pairs],
    )
    for pair, (source, target, carried) in zip(pairs, found, strict=True):
        assert (source, target) == (pair.source, pair.target)
        assert Counter(carried.split()) == content_words(pair)
    strange = ["", "fox", "constructor", "a foxes slept", "many fox slept", "an fox ate", "the fox sleep"]
    strange += ["the fox followed", "the fox followed a lake", "the fox slept near a lake"]
    strange += ["the fox crossed the lake near a lake", "the fox slept the fox"]
    found = page.run("(all) => all.map((text) => exformer.englishItalian.parse(text))", strange)
    assert found == [None] * len(strange)


def test_the_page_translates_as_the_library(page, site, models) -> None:
    """Both models, over all lengths; and the weights that are drawn."""
    figures.opened(page, site)
    random.seed(3)
    trees = [evidence.sentence(length) for length in range(3, 13) for _ in range(12)]
    for key, found in models.items():
        texts = page.run(
            """(key, sources) => { const figure = document.querySelector("exformer-recurrence");
                return sources.map((source) => figure.run(key, source.split(" ")).words.join(" ")); }""",
            key,
            [derive(tree).source for tree in trees],
        )
        assert [text.split() for text in texts] == evidence.translations(found, trees)


# --- In use ---


def test_first_state(page, site, models) -> None:
    """Before any touch: the lesson's sentence, and no console message; nothing but files."""
    figures.opened(page, site)
    shown = page.run(SHOWN)
    assert shown["source"] == FIRST
    for key, found in models.items():
        assert shown[key].split() == evidence.translations(found, [parse(FIRST)])[0]
    assert "3 of 7" in page.run(TEXT, ".head.a")
    assert "7 of 7" in page.run(TEXT, ".head.b")
    wrong = page.run(
        "() => [...document.querySelectorAll('.words.a .wrong b')].map((word) => word.textContent)"
    )
    assert wrong == ["felici", "vicino", "a", "una", "collina"]
    assert page.run("() => document.querySelectorAll('.words.b .wrong').length") == 0
    assert page.messages == []
    assert all(str(request).startswith(("file:", "about:", "data:")) for request in page.requests)


@in_one_browser
def test_every_length(page, site, models) -> None:
    """The slider gives a sentence of each length, one of the grammar, and the markers stand at its shares."""
    figures.opened(page, site)
    for n in range(3, 13):
        page.run(SLIDE, n)
        shown = page.run(SHOWN)
        tree = parse(shown["source"])
        assert len(shown["source"].split()) == n
        for key, found in models.items():
            written = evidence.translations(found, [tree])[0]
            assert shown[key].split() == written
            wanted = content_words(derive(tree))
            arrived = sum(min(count, written.count(word)) for word, count in wanted.items())
            assert f"{arrived} of {wanted.total()} " in page.run(TEXT, f".head.{key} small")
            y = page.run("(key) => document.querySelector(`.dot.${key}`).style.getPropertyValue('--y')", key)
            assert float(y) == pytest.approx(arrived / wanted.total())


@in_one_browser
def test_who_notices(page, site, models) -> None:
    """The first noun, then the last; what is said is what the library finds."""
    figures.opened(page, site)
    for slot, word in (("subject.noun", "lions"), ("where.noun", "parks")):
        before = page.run(SHOWN)
        page.run(CHOOSE, slot, word)
        after, line = page.run(SHOWN), page.run(TEXT, ".noticed")
        assert word in after["source"]
        assert f"→ {word}" in line
        for key, name in (("a", "C"), ("b", "D")):
            kept = before[key] == after[key]
            assert (f"{name} changes nothing" in line) == kept
            assert (
                page.run("(key) => document.querySelectorAll(`.words.${key} .changed`).length", key) > 0
            ) == (not kept)
    assert "C changes nothing, D changes 1 word" in line  # the last noun: C does not notice


@in_one_browser
def test_the_task_is_checked(page, site, models) -> None:
    """A sentence of seven words that C gets right solves it; one with a mistake does not."""
    random.seed(4)
    solution = None
    while solution is None:
        trees = [evidence.sentence(7) for _ in range(200)]
        texts = evidence.translations(models["a"], trees)
        solution = next(
            (t for t, text in zip(trees, texts, strict=True) if text == derive(t).target.split()), None
        )
    figures.opened(page, site)
    assert page.run(TEXT, ".answer") == "None yet."
    page.run("(text) => document.querySelector('exformer-recurrence').begin(text)", derive(solution).source)
    assert page.run(TEXT, ".answer") == f"Solved: 7 words, “{derive(solution).source}”."
    page.run(SLIDE, 12)
    assert page.run(TEXT, ".answer").startswith("Solved: 7 words")


def test_keys_alone(page, site) -> None:
    """Slider, a word, a word of D that is held and let go."""
    figures.opened(page, site)
    page.press("Tab", "ArrowLeft")
    assert len(page.run(SHOWN)["source"].split()) == 10
    page.press("Tab", "Tab", "Tab")
    assert page.run("() => document.activeElement.dataset.slot") == "subject.noun"
    page.press("ArrowDown")
    page.wait("() => document.querySelector('.noticed').textContent.includes('→')")
    assert page.run("() => document.activeElement.dataset.slot") == "subject.noun"
    page.run("() => document.querySelector('.words.b button').focus()")
    page.press("ArrowDown", "Enter")
    held = """() => [...document.querySelectorAll('.words.b [aria-pressed=true]')]
        .map((each) => each.dataset.word)"""
    assert page.run(held) == ["1"]
    assert page.run("() => document.querySelectorAll('[data-weight]').length") >= 1
    page.wait(
        "() => document.querySelector('exformer-recurrence [aria-live]').textContent.includes('Escape')"
    )
    page.press("Escape")
    assert page.run(held) == []


def test_the_address(page, site) -> None:
    """It has the sentence; a garbled one is the first sentence."""
    figures.opened(page, site)
    page.run(CHOOSE, "subject.noun", "lions")
    page.wait('() => decodeURIComponent(location.hash).startsWith("#recurrence=many lions didn\'t")')
    figures.opened(page, site, page.run("() => location.hash.slice(1)"))
    assert page.run(SHOWN)["source"].startswith("many lions didn't find")
    for garbled in ("%E0%A4%A", "x" * 5000, "the 🦊 slept", "<b>a fox slept", "", "a fox " * 900):
        figures.opened(page, site, f"recurrence={garbled}")
        assert page.run(SHOWN)["source"] == FIRST
    assert page.messages == []


@pytest.mark.parametrize("width", [1280, 390])
def test_for_everyone(chromium, site, width) -> None:
    """Accessible, nothing too wide, nothing moves, before and after use, by touch."""
    page = chromium.page(width=width, height=900, touch=width < 500)
    figures.opened(page, site)
    height = page.run("() => document.querySelector('exformer-recurrence').offsetHeight")
    asked = page.run(
        "() => parseFloat(getComputedStyle(document.querySelector('exformer-recurrence')).minHeight)"
    )
    assert height <= asked + 1, "it takes more room than it has kept"
    for n in (11, 3, 12):
        page.run(SLIDE, n)
        (page.tap if width < 500 else page.click)(".words.b li:nth-child(2) button")
        page.run(CHOOSE, "subject.noun", "wolves" if n == 3 else "tigers")
        assert page.run("() => document.documentElement.scrollWidth <= innerWidth")
        assert page.run("() => document.querySelector('exformer-recurrence').offsetHeight") == height
    assert page.messages == []
    assert figures.faults(page) == []
    page.close()
