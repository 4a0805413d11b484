"""The live translator: its first state, its gestures and its task, and every number of its caption."""

import figures
import pytest
import torch

from exformer import load_model, record_attention, translate
from exformer.corpora.captions import captions
from exformer_lessons.encoder_decoder import live as translator

LIVE = "() => document.querySelector('[data-scripts]').classList.contains('live')"
TEXT = "() => document.querySelector('exformer-translator').found.text"
FIRST = "Two dogs play with an orange toy in the tall grass."
#: Of each word the German word to which it attends most; then each word is pointed at those of later words
#: to which nobody else attends.
POINTED = """(texts) => {
  const { model, tokenizer } = document.querySelector("exformer-translator");
  let [pairs, moved, kept] = [0, 0, 0];
  for (const text of texts) {
    const whole = exformer.pointedTranslation(model, tokenizer, text);
    const attended = whole.words.map(({ tokens: [first] }) => {
      const weights = whole.srcWords.map(({ tokens }) =>
        whole.weights[first].flat().reduce((all, row) => tokens.reduce((sum, t) => sum + row[t], all), 0));
      return weights.indexOf(Math.max(...weights));
    });
    for (let word = 1; word < whole.words.length - 2; word++)
      for (let later = word + 1; later < whole.words.length - 1; later++) {
        const at = attended[later];
        const alone = attended.indexOf(at) === later && attended.lastIndexOf(at) === later;
        if (!alone || whole.words[later].text.length < 4) continue;
        const found = exformer.pointedTranslation(model, tokenizer, text, { pointed: new Map([[word, at]]) });
        pairs++;
        moved += found.words[word]?.text === whole.words[later].text;
        kept += found.words[word]?.text === whole.words[word].text;
      }
  }
  return [pairs, moved, kept];
}"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Write a page that has the figure, with its heads, and nothing else."""
    return figures.write_page(tmp_path_factory.mktemp("translator"), "translator", "heads")


@pytest.fixture
def opened(chromium, site):
    page = chromium.page().open(site)
    page.wait(LIVE)
    yield page
    assert page.messages == []
    page.close()


def words(page, side: str) -> list[str]:
    return page.run(f"() => [...document.querySelectorAll('.{side} button')].map((each) => each.textContent)")


def test_the_first_state_is_the_still_picture(opened) -> None:
    assert opened.run(TEXT) == FIRST
    assert words(opened, "source") == translator.GERMAN
    assert words(opened, "target") == translator.ENGLISH
    weights = opened.run(
        "() => { const f = document.querySelector('exformer-translator'); "
        "return f.found.words.map((_, word) => f.weightsOf(word)); }"
    )
    assert torch.allclose(torch.tensor(weights), torch.tensor(translator.WEIGHTS), atol=0.0051)


def test_the_weights_are_those_of_the_library(opened) -> None:
    model, (source, target), _ = load_model(translator.MODEL)
    german = "Zwei Hunde spielen im hohen Gras mit einem orangen Spielzeug."
    src = torch.tensor([[*source.encode(german), source.eos_id]])
    tgt = torch.tensor([[target.bos_id, *target.encode(FIRST)]])
    with torch.no_grad(), record_attention(model.eval()) as recorded:
        model(src, tgt)
    rows = torch.stack(
        [weights[0] for name, weights in recorded.items() if "cross" in name]
    )  # (layer, head, …)
    mean = rows.mean(dim=(0, 1))[: tgt.size(1) - 1]
    shown = opened.run(
        "() => document.querySelector('exformer-translator').found.weights.map((layers) => "
        "layers.flat().reduce((sum, row) => sum.map((each, i) => each + row[i]), Array(99).fill(0)))"
    )
    shown = torch.tensor([[each / 16 for each in row[: src.size(1)]] for row in shown], dtype=torch.float32)
    assert torch.allclose(shown, mean, atol=1e-4)


def test_the_task_by_two_presses(opened) -> None:
    opened.click(f".target li:nth-child({1 + translator.ENGLISH.index('toy')}) button")
    assert "should attend to" in opened.run("() => document.querySelector('.hint').textContent")
    opened.click(f".source li:nth-child({1 + translator.GERMAN.index('Gras')}) button")
    assert "orange grass" in opened.run(TEXT)
    assert opened.run("() => document.querySelector('.task').classList.contains('solved')")
    assert FIRST in opened.run("() => document.querySelector('p.before').textContent")
    new = "() => [...document.querySelectorAll('.target .new')].map((each) => each.textContent)"
    assert opened.run(new) == ["grass", "with", "an", "orange"]  # not in the former sentence, or not there
    assert "nats less probable" in opened.run("() => document.querySelector('.loss').textContent")
    opened.click(".again")
    assert opened.run(TEXT) == FIRST
    assert not opened.run("() => document.querySelector('.task').classList.contains('solved')")


def test_the_task_by_keys_alone(opened) -> None:
    opened.run("() => document.querySelector('.target button').focus()")
    opened.press(*["ArrowDown"] * translator.ENGLISH.index("toy"), "Enter")
    assert opened.run("() => document.activeElement.textContent") == "Spielzeug"  # what it attends to now
    opened.press("Escape")
    assert opened.run("() => document.activeElement.textContent") == "toy"
    opened.press("Enter", *["ArrowUp"] * 4, "Enter")
    assert "orange grass" in opened.run(TEXT)
    assert opened.run("() => document.activeElement.textContent") == "grass"


def test_the_task_by_dragging(opened) -> None:
    middle = (
        "(css, n) => { const box = document.querySelectorAll(css)[n].getBoundingClientRect(); "
        "return [box.left + box.width / 2, box.top + box.height / 2]; }"
    )
    start = opened.run(middle, ".target button", translator.ENGLISH.index("orange"))
    end = opened.run(middle, ".source button", translator.GERMAN.index("Gras"))
    opened.drag(start, end)
    assert "with an grass" in opened.run(TEXT)


def test_the_address_brings_the_state_back(opened, chromium) -> None:
    opened.click(".layer")
    opened.click(".target li:nth-child(7) button")
    opened.click(".source li:nth-child(6) button")
    text, state = opened.run(TEXT), opened.run("() => document.querySelector('exformer-translator').state")
    opened.wait("() => location.hash.startsWith('#translator=')")
    other = chromium.page().open(opened.run("() => location.href"))
    other.wait(LIVE)
    assert other.run(TEXT) == text
    assert other.run("() => document.querySelector('exformer-translator').state") == state
    other.close()


@pytest.mark.parametrize(
    ("state", "kept"),
    [
        ("a%7Cb%7Cc%7C%7C", "a|b|c||"),  # a caption with the sign that parts the state
        ("%7C%7C99%3E99,-1%3E-1,2%3E500", ""),  # words that there are not
        ("x", "x||"),
    ],
)
def test_the_address_is_clamped(chromium, site, state, kept) -> None:
    page = chromium.page()
    page.open(f"{site.as_uri()}#translator={state}")
    page.wait(LIVE)
    assert page.run("() => document.querySelector('exformer-translator').state") == kept
    if not kept:
        assert page.run("() => document.querySelector('.before').textContent") == ""
    page.close()


def test_what_is_typed(opened) -> None:
    for typed, said in (
        ("", "Type a German caption"),
        ("Wort " * 2000, "Only the first 160"),
        ("Ein Hund 日 spielt.", "knows no “日”: what it writes for it is a guess"),
        ("☃ 𝔘𝔫𝔦𝔠𝔬𝔡𝔢 \ufeff <b>x</b>", None),
    ):
        opened.run("(text) => document.querySelector('exformer-translator').ask(text)", typed)
        if said:
            assert said in opened.run("() => document.querySelector('.hint').textContent")
        else:
            assert opened.run(TEXT)
    assert opened.run("() => document.querySelectorAll('.board b').length") == 0


def test_pointing_decides_the_word(opened) -> None:
    german = [pair.target for pair in captions()]
    pairs, moved, _ = opened.run(POINTED, german)
    assert pairs == pytest.approx(translator.PAIRS, abs=3)
    assert moved == pytest.approx(translator.MOVED, abs=3)


def test_without_all_heads_every_translation_is_the_same() -> None:
    model, tokenizer, _ = load_model(translator.MODEL)
    for layer in model.decoder:
        layer.cross_attention.w_o.weight.data.zero_()
    german = [pair.target for pair in captions()]
    assert len(set(translate(model, tokenizer, german, max_new_tokens=40, batch_size=40))) == 1


def test_long_words_stay_on_a_phone(chromium, tmp_path) -> None:
    page = chromium.page(width=390, height=844)
    page.open(figures.write_page(tmp_path, "translator"))
    page.wait(LIVE)
    for text in ("Ein Skateboardfahrer springt.", "Geschwindigkeitsbegrenzungsschild"):
        page.run(
            """(text) => {
              const input = document.querySelector('exformer-translator .ask input');
              input.value = text;
              input.form.requestSubmit();
            }""",
            text,
        )
        page.wait(f"() => document.querySelector('.source').textContent.includes('{text.split()[-1]}')")
        assert page.run("() => document.documentElement.scrollWidth") <= 390
    page.close()
