"""The live figure on merges: it learns what the lesson learns, asks before it tells, and judges rightly."""

import random
import re

import figures
import pytest
from browsers import in_one_browser

from exformer_lessons.live import live_figure
from exformer_lessons.tokens.live import FIGURE, TEXT, learn

RNG = random.Random(8)
TEXTS = [
    TEXT,
    TEXT.lower(),
    "low low lower newest newest widest",
    "aaaa aaa aa a",
    "perché è così, λόγος — é\n\tzwei  Wörter ",
    "ab " * 40,
    "",
    "a b c",
    "\N{FOX FACE}\N{FULL MOON SYMBOL}\N{FOX FACE}\N{FULL MOON SYMBOL} \ufb01n \ufb01n \ufb01\N{FOX FACE}",
    *("".join(RNG.choices("aabbc  ", k=60)) for _ in range(30)),
    *("".join(RNG.choices("strawbey ", k=120)) for _ in range(30)),
]
LEARN = """([text, n]) => {
    const { words, merges } = exformer.merges.learn(text, n);
    return [words, merges.map(({ pair, count }) => [pair, count])];
}"""
WORDS = """() => [...document.querySelectorAll('.words .piece')].map((piece) =>
    [...piece.children].map((each) => each.textContent).join(' '))"""
CHOICES = "() => [...document.querySelectorAll('.pair b')].map((each) => each.textContent)"
COUNTS = "() => [...document.querySelectorAll('.pair span')].map((each) => each.textContent)"
ANSWER = "() => document.querySelector('.answer').textContent"
ENCODED = "() => [...document.querySelectorAll('.encoded .token')].map((each) => each.textContent)"
SOLVED = "() => document.querySelector('.solved').textContent"
CHOOSE = """(name) => [...document.querySelectorAll('.pair')].find((each) =>
    each.querySelector('b').textContent === name).click()"""
TYPE = """([css, text]) => {
    const input = document.querySelector(css);
    input.value = text;
    input.dispatchEvent(new Event('input', { bubbles: true }));
}"""
SHOWS = ("merges",)


def predict(page, *names):
    """Choose a pair in each round, and go on to the next."""
    for name in names:
        page.run(CHOOSE, name)
        page.click(".next")


# --- What it computes ---


def test_it_learns_what_the_lesson_learns(page, site) -> None:
    """All merges of many texts, with their counts and the words that are left, in both browsers."""
    figures.opened(page, site)
    for text in TEXTS:
        words, merges = page.run(LEARN, [text, 50])
        right_words, right_merges = learn(text, 50)
        assert [tuple(word) for word in words] == right_words, text
        assert [(tuple(pair), count) for pair, count in merges] == right_merges, text


def test_a_word_is_encoded_by_replaying_the_merges() -> None:
    """The merges of the text turn its own words into the tokens that learning left."""
    for text in TEXTS:
        words, merges = learn(text, 20)
        for word, tokens in zip(text.split(), words, strict=True):
            replayed = tuple(word)
            for pair, _ in merges:
                joined, i = [], 0
                while i < len(replayed):
                    fits = replayed[i : i + 2] == pair
                    joined.append("".join(pair) if fits else replayed[i])
                    i += 1 + fits
                replayed = tuple(joined)
            assert replayed == tokens


def test_the_merges_of_the_lesson() -> None:
    """The alternative text and the lesson name them."""
    made = ["".join(pair) for pair, _ in learn(TEXT, 6)[1]]
    assert made == ["pe", "ck", "ed", "ick", "pick", "per"]
    assert all(re.search(rf"\b{each}\b", FIGURE.alt) for each in made)


# --- What it asks and tells ---


@in_one_browser
def test_it_asks_before_it_tells(page, site) -> None:
    """Six pairs in alphabetical order, the right one among them, and no count before the press."""
    figures.opened(page, site)
    choices = page.run(CHOICES)
    assert choices == sorted(choices)
    assert "p e" in choices
    assert set(page.run(COUNTS)) == {"?"}
    assert page.run("() => document.querySelector('.next').disabled")
    page.run(CHOOSE, "p e")
    assert page.run(COUNTS)[choices.index("p e")] == "4 ×"
    assert page.run(ANSWER) == "Right: p e occurs most often."
    assert page.run(WORDS)[1] == "P i pe r"
    assert page.messages == []


@in_one_browser
def test_a_wrong_pair_is_told_both_counts(page, site) -> None:
    """The right merge is made all the same, and a second press does nothing."""
    figures.opened(page, site)
    page.run(CHOOSE, "c k")
    assert page.run(ANSWER) == "No: p e occurs 4 times, c k only 3."
    page.run(CHOOSE, "p e")
    assert page.run(ANSWER).startswith("No")
    assert page.run(WORDS)[1] == "P i pe r"


@in_one_browser
def test_a_tie_is_told_from_a_mistake(page, site) -> None:
    """Third merge: the first in the alphabet is right, another of the four is a tie."""
    for name, answer in (
        ("p i", "A tie: p i occurs as often, but e d is first in the alphabet."),
        ("e d", "Right: of 4 pairs that occur equally often, e d is first in the alphabet."),
    ):
        figures.opened(page, site)
        page.run("() => document.querySelector('.again').click()")
        predict(page, "p e", "c k")
        page.run(CHOOSE, name)
        assert page.run(ANSWER) == answer


@in_one_browser
def test_six_right_predictions_are_counted(page, site) -> None:
    """With one wrong one before them the sentence says seven."""
    figures.opened(page, site)
    predict(page, "p e", "c k", "e d", "i ck", "p ick")
    assert page.run(SOLVED) == ""
    page.run(CHOOSE, "pe r")
    assert page.run(SOLVED) == "You predicted 6 merges of 6."
    assert page.run(ENCODED) == ["pe", "p", "per", "ed"]
    page.click(".again")
    predict(page, "c k", "c k", "e d", "i ck", "p ick", "pe r")
    assert page.run(SOLVED) == ""
    page.run(CHOOSE, page.run("() => document.querySelector('exformer-merges').pairs[0].pair.join(' ')"))
    assert page.run(SOLVED) == "You predicted 6 merges of 7."


@in_one_browser
def test_a_text_of_ones_own(page, site) -> None:
    """A whole word after three merges solves the task; a part of a word, or a shorter one, does not."""
    figures.opened(page, site)
    for text, picks, solved in (
        ("sand sand sand", ("a n", "an d", "s and"), "Found: after three merges, sand is one token."),
        ("sands sands sands", ("a n", "an d", "and s"), ""),
        ("on on on sun sun", ("o n", "s u", "su n"), ""),
    ):
        page.run(TYPE, [".text", text])
        assert page.run(SOLVED) == ""
        for _ in picks:
            best = page.run("() => document.querySelector('exformer-merges').pairs[0]?.pair.join(' ')")
            if best:
                predict(page, best)
        assert page.run(SOLVED) == solved, text


@in_one_browser
def test_no_pair_is_left(page, site) -> None:
    """Nor in an empty text, and nothing breaks."""
    figures.opened(page, site)
    for text in ("", "a b c", "   "):
        page.run(TYPE, [".text", text])
        assert page.run("() => document.querySelector('.question').textContent").startswith("No pair")
        assert page.run(CHOICES) == []
    assert page.messages == []


@in_one_browser
def test_nothing_typed_becomes_markup(page, site) -> None:
    """Tags stay text, in the words, the pairs, the answer and the new word."""
    figures.opened(page, site)
    page.run(TYPE, [".text", "<img/src=x/onerror=alert(1)> <img/src=x/onerror=alert(1)>"])
    page.run(TYPE, [".word", "<b>&amp;"])
    predict(page, page.run(CHOICES)[0])
    assert page.run("() => document.querySelectorAll('.live-stage img, .encoded b').length") == 0
    assert page.messages == []


def test_keys_alone(page, site) -> None:
    """Tab to the first pair, Enter, and Enter again begins the next round."""
    figures.opened(page, site)
    page.press("Tab", "Tab", "Tab", "Enter")
    assert page.run(ANSWER).startswith("No: p e occurs 4 times, c k only 3")
    page.press("Enter")
    assert page.run("() => document.activeElement.className") == "pair"
    page.wait("() => location.hash.startsWith('#merges=1%7CPeter')")
    page.wait("() => document.querySelector('exformer-merges [aria-live]').textContent !== ''")


@pytest.mark.parametrize(
    ("given", "text", "n"),
    [
        ("2%7Clow%20low%20lower", "low low lower", 2),
        ("999%7Caa", "aa", 1),
        ("0%7C", "", 0),
        ("x%7Caa", TEXT, 0),
        ("2", TEXT, 0),
        (f"1%7C{'ab' * 900}", "ab" * 80, 1),
    ],
    ids=lambda each: str(each)[:12],
)
def test_any_address_is_a_state(page, site, given, text, n) -> None:
    """What is garbled is the start, what is too long is cut."""
    figures.opened(page, site, f"merges={given}")
    assert page.run("() => document.querySelector('.text').value") == text
    assert page.run("() => document.querySelector('exformer-merges').merges.length") == n
    assert page.messages == []


@pytest.mark.parametrize(("width", "height"), [(1280, 900), (820, 900), (390, 844), (320, 700)])
def test_nothing_shifts(chromium, site, width, height) -> None:
    """What is reserved is enough in every state, and no state is wider than the page."""
    page = chromium.page(width=width, height=height)
    figures.opened(page, site)
    size = """() => [
        document.querySelector("exformer-merges").offsetHeight, document.documentElement.scrollWidth,
        document.querySelector(".live-stage").offsetHeight]"""
    begun = page.run(size)
    long = "strawberry " * 9 + "Donaudampfschifffahrtsgesellschaft " * 2
    for text in (TEXT, long[:160], "", "w" * 160):
        page.run(TYPE, [".text", text])
        for _ in range(7):
            now = page.run(size)
            assert now[0] == begun[0], text
            assert now[1] <= width, text
            best = page.run("() => document.querySelector('exformer-merges').pairs[0]?.pair.join(' ')")
            if best:
                page.run(CHOOSE, page.run(CHOICES)[-1])
                assert page.run(size)[0] == begun[0], text
                page.click(".next")
    page.close()


def test_its_still_picture_is_the_lessons() -> None:
    """Three rows of tokens, the last with the six merges."""
    svg = live_figure("merges").figure.still().svg
    assert svg.count(">pick<") == 2
    assert svg.count(">per<") == 2
