"""The live translator: its first state, its gestures and its task, and every number of its caption."""

import figures
import pytest
import torch

from exformer import load_model, record_attention, translate
from exformer.corpora.captions import captions
from exformer_lessons.encoder_decoder import live as translator

SHOWS = ("translator", "heads")
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


def words(page, side: str) -> list[str]:
    return page.run(f"() => [...document.querySelectorAll('.{side} button')].map((each) => each.textContent)")


def test_the_first_state_is_the_still_picture(begun) -> None:
    assert begun.run(TEXT) == FIRST
    assert words(begun, "source") == translator.GERMAN
    assert words(begun, "target") == translator.ENGLISH
    weights = begun.run(
        "() => { const f = document.querySelector('exformer-translator'); "
        "return f.found.words.map((_, word) => f.weightsOf(word)); }"
    )
    assert torch.allclose(torch.tensor(weights), torch.tensor(translator.WEIGHTS), atol=0.0051)


def test_the_weights_are_those_of_the_library(begun) -> None:
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
    shown = begun.run(
        "() => document.querySelector('exformer-translator').found.weights.map((layers) => "
        "layers.flat().reduce((sum, row) => sum.map((each, i) => each + row[i]), Array(99).fill(0)))"
    )
    shown = torch.tensor([[each / 16 for each in row[: src.size(1)]] for row in shown], dtype=torch.float32)
    assert torch.allclose(shown, mean, atol=1e-4)


def test_the_task_by_two_presses(begun) -> None:
    begun.click(f".target li:nth-child({1 + translator.ENGLISH.index('toy')}) button")
    assert "should attend to" in begun.run("() => document.querySelector('.hint').textContent")
    begun.click(f".source li:nth-child({1 + translator.GERMAN.index('Gras')}) button")
    assert "orange grass" in begun.run(TEXT)
    assert begun.run("() => document.querySelector('.task').classList.contains('solved')")
    assert FIRST in begun.run("() => document.querySelector('p.before').textContent")
    new = "() => [...document.querySelectorAll('.target .new')].map((each) => each.textContent)"
    assert begun.run(new) == ["grass", "with", "an", "orange"]  # not in the former sentence, or not there
    assert "nats less probable" in begun.run("() => document.querySelector('.loss').textContent")
    begun.click(".again")
    assert begun.run(TEXT) == FIRST
    assert not begun.run("() => document.querySelector('.task').classList.contains('solved')")


def test_the_task_by_keys_alone(begun) -> None:
    begun.run("() => document.querySelector('.target button').focus()")
    begun.press(*["ArrowDown"] * translator.ENGLISH.index("toy"), "Enter")
    assert begun.run("() => document.activeElement.textContent") == "Spielzeug"  # what it attends to now
    begun.press("Escape")
    assert begun.run("() => document.activeElement.textContent") == "toy"
    begun.press("Enter", *["ArrowUp"] * 4, "Enter")
    assert "orange grass" in begun.run(TEXT)
    assert begun.run("() => document.activeElement.textContent") == "grass"


def test_the_task_by_dragging(begun) -> None:
    middle = (
        "(css, n) => { const box = document.querySelectorAll(css)[n].getBoundingClientRect(); "
        "return [box.left + box.width / 2, box.top + box.height / 2]; }"
    )
    start = begun.run(middle, ".target button", translator.ENGLISH.index("orange"))
    end = begun.run(middle, ".source button", translator.GERMAN.index("Gras"))
    begun.drag(start, end)
    assert "with an grass" in begun.run(TEXT)


def test_the_address_brings_the_state_back(begun, chromium, site) -> None:
    begun.click(".layer")
    begun.click(".target li:nth-child(7) button")
    begun.click(".source li:nth-child(6) button")
    text, state = begun.run(TEXT), begun.run("() => document.querySelector('exformer-translator').state")
    begun.wait("() => location.hash.startsWith('#translator=')")
    other = figures.opened(chromium.page(), site, begun.run("() => location.hash.slice(1)"))
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
    page = figures.opened(chromium.page(), site, f"translator={state}")
    assert page.run("() => document.querySelector('exformer-translator').state") == kept
    if not kept:
        assert page.run("() => document.querySelector('.before').textContent") == ""
    page.close()


def test_what_is_typed(begun) -> None:
    for typed, said in (
        ("", "Type a German caption"),
        ("Wort " * 2000, "Only the first 160"),
        ("Ein Hund 日 spielt.", "knows no “日”: what it writes for it is a guess"),
        ("☃ 𝔘𝔫𝔦𝔠𝔬𝔡𝔢 \ufeff <b>x</b>", None),
    ):
        begun.run("(text) => document.querySelector('exformer-translator').ask(text)", typed)
        if said:
            assert said in begun.run("() => document.querySelector('.hint').textContent")
        else:
            assert begun.run(TEXT)
    assert begun.run("() => document.querySelectorAll('.board b').length") == 0


def test_pointing_decides_the_word(begun) -> None:
    german = [pair.target for pair in captions()]
    pairs, moved, _ = begun.run(POINTED, german)
    assert pairs == pytest.approx(translator.PAIRS, abs=3)
    assert moved == pytest.approx(translator.MOVED, abs=3)


def test_without_all_heads_every_translation_is_the_same() -> None:
    model, tokenizer, _ = load_model(translator.MODEL)
    for layer in model.decoder:
        layer.cross_attention.w_o.weight.data.zero_()
    german = [pair.target for pair in captions()]
    assert len(set(translate(model, tokenizer, german, max_new_tokens=40, batch_size=40))) == 1


def test_long_words_stay_on_a_phone(chromium, tmp_path) -> None:
    page = figures.opened(chromium.page(width=390, height=844), figures.write_page(tmp_path, "translator"))
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
