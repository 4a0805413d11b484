"""The live heads: their weights, translations without some of them, and the caption's numbers."""

from copy import deepcopy

import figures
import pytest
import torch

from exformer import load_model, record_attention, translate
from exformer.corpora.captions import captions
from exformer_lessons.multi_head_attention import live as heads

SHOWS = ("heads",)
FIRST = "A boy is pushing a shopping cart through the supermarket."
FOUND = "Ein Junge schiebt einen Einkaufswagen durch den Supermarkt."
WRONG = "Ein Junge schiebt einen Einkaufswagen durch die Supermarkt."
ALL = [(layer, head) for layer in range(4) for head in range(4)]
#: The translations of some texts without some heads.
RUN = """([texts, off]) => {
  const figure = document.querySelector("exformer-heads");
  return texts.map((text) => {
    figure.text = text;
    return figure.run(exformer.normalizeLine(text), off).text;
  });
}"""


@pytest.fixture(scope="module")
def model():
    return load_model(heads.MODEL)


def without(model, off):
    model = deepcopy(model)
    for layer, head in off:
        model.encoder[layer].self_attention.w_o.weight.data[:, 32 * head : 32 * (head + 1)] = 0
    return model


def said(page, css: str) -> str:
    return page.run("(css) => document.querySelector(css).textContent", css)


def test_the_first_state_is_the_still_picture(begun) -> None:
    assert said(begun, ".german") == FOUND
    assert (
        begun.run(
            "() => [...document.querySelectorAll('.from li')].map((each) => each.firstChild.textContent)"
        )
        == heads.WORDS
    )
    assert said(begun, ".name") == "Layer 2, head 1"
    weights = begun.run(
        "() => { const f = document.querySelector('exformer-heads'); "
        "return f.words().slice(0, -1).map((_, word) => f.weightsOf(f.chosen, word)); }"
    )
    assert torch.allclose(torch.tensor(weights), torch.tensor(heads.WEIGHTS), atol=0.0051)


def test_the_weights_are_those_of_the_library(begun, model) -> None:
    model, (source, target), _ = model
    ids = [*source.encode(FIRST), source.eos_id]
    with torch.no_grad(), record_attention(model.eval()) as recorded:
        model(torch.tensor([ids]), torch.tensor([[target.bos_id]]))
    shown = begun.run(
        "() => document.querySelector('exformer-heads').whole.rows"
        ".map((layer) => layer.map((head) => [...head]))"
    )
    for layer in range(4):
        ours = torch.tensor(shown[layer]).view(4, len(ids), len(ids))
        assert torch.allclose(ours, recorded[f"encoder.{layer}.self_attention"][0], atol=1e-5)


def test_without_heads_it_translates_as_the_library(begun, model) -> None:
    model, tokenizers, _ = model
    texts = [FIRST, *(pair.source for pair in captions()[:2])]
    for off in ([(1, 1)], [(0, 3), (3, 1)], ALL):
        paths = [f"encoder.{layer}.self_attention {head}" for layer, head in off]
        assert begun.run(RUN, [texts, paths]) == translate(without(model, off), tokenizers, texts)


def test_the_numbers_of_the_caption(begun) -> None:
    texts = [pair.source for pair in captions()]
    whole = begun.run(RUN, [texts, []])

    def kept(off):
        found = begun.run(RUN, [texts, [f"encoder.{layer}.self_attention {head}" for layer, head in off]])
        return sum(a == b for a, b in zip(whole, found, strict=True))

    one = [kept([each]) for each in ALL]
    assert (len(texts), (min(one), max(one)), kept(ALL)) == (heads.CAPTIONS, heads.HEAD_OUT, heads.ALL_OUT)


def test_the_task_names_one_head_and_asks_for_the_other(begun) -> None:
    assert said(begun, ".answer") == ""
    for name, answer in (("1 1", ""), ("2 3", "Found: layer 3, head 4. ")):
        begun.click(f"[data-head='{name}']")
        begun.click(".take")
        assert said(begun, ".german") == WRONG
        assert said(begun, ".german u") == "die"
        assert said(begun, ".before") == f"before: {FOUND}"
        assert said(begun, ".answer").startswith(answer)
        assert bool(said(begun, ".answer")) == bool(answer)
        begun.click(".take")
        assert said(begun, ".german") == FOUND
        assert said(begun, ".answer") == said(begun, ".before") == ""


def test_none_of_the_other_heads_solves_it(begun) -> None:
    for layer, head in ALL:
        if (layer, head) in ((1, 1), (2, 3)):
            continue
        begun.click(f"[data-head='{layer} {head}']")
        begun.click(".take")
        assert said(begun, ".german") == FOUND, (layer, head)
        assert said(begun, ".before") == "as before, word for word"
        assert said(begun, ".answer") == ""
        begun.click(".take")


def test_all_heads_at_once_and_back(begun) -> None:
    begun.click(".all")
    assert said(begun, ".all") == "Put all back"
    assert begun.run("() => document.querySelectorAll('.wall .out').length") == 16
    assert said(begun, ".german") != FOUND
    begun.click(".again")
    assert said(begun, ".german") == FOUND
    assert said(begun, ".name") == "Layer 2, head 1"


def test_the_keys_are_enough_and_a_change_is_said(begun) -> None:
    begun.run("() => document.querySelector(\"[data-head='1 1']\").focus()")
    begun.press("Enter")
    spoken = "() => document.querySelector('exformer-heads > [aria-live]').textContent"
    begun.wait(f"() => ({spoken})().includes('cart looks at cart')")
    begun.run("() => document.querySelector('.take').focus()")
    begun.press("Enter")
    begun.wait(f"() => ({spoken})() === '1 of 16 heads are out. Now: {WRONG}'")


def test_an_empty_and_a_long_caption_are_told(begun) -> None:
    ask = (
        "(text) => { document.querySelector('input').value = text; "
        "document.querySelector('.ask').requestSubmit(); }"
    )
    begun.run(ask, "  ")
    assert "Type an English caption" in said(begun, ".german")
    begun.click(".all")  # nothing to translate, and no harm
    begun.run(ask, "A dog is running through the snow. " * 6)
    assert "Only the first 100 characters" in said(begun, ".hint")
    begun.run(ask, "Ένας dog")
    assert "knows no “Έ”" in said(begun, ".hint")


def test_the_address_brings_the_state_back(begun, chromium, site) -> None:
    begun.click("[data-head='2 3']")
    begun.click(".take")
    begun.wait("() => location.hash.startsWith('#heads=')")
    other = figures.opened(chromium.page(), site, begun.run("() => location.hash.slice(1)"))
    assert said(other, ".german") == WRONG
    assert said(other, ".name") == "Layer 3, head 4"
    other.close()
