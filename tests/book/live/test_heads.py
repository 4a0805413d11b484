"""The live heads: their weights, translations without some of them, and the caption's numbers."""

from copy import deepcopy

import figures
import pytest
import torch

from exformer import load_model, record_attention, translate
from exformer.corpora.captions import captions
from exformer_lessons.multi_head_attention import live as heads

LIVE = "() => document.querySelector('[data-scripts]').classList.contains('live')"
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


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Write a page that has the figure and nothing else."""
    return figures.write_page(tmp_path_factory.mktemp("heads"), "heads")


@pytest.fixture
def opened(chromium, site):
    page = chromium.page().open(site)
    page.wait(LIVE)
    yield page
    assert page.messages == []
    page.close()


def without(model, off):
    model = deepcopy(model)
    for layer, head in off:
        model.encoder[layer].self_attention.w_o.weight.data[:, 32 * head : 32 * (head + 1)] = 0
    return model


def said(page, css: str) -> str:
    return page.run("(css) => document.querySelector(css).textContent", css)


def test_the_first_state_is_the_still_picture(opened) -> None:
    assert said(opened, ".german") == FOUND
    assert (
        opened.run(
            "() => [...document.querySelectorAll('.from li')].map((each) => each.firstChild.textContent)"
        )
        == heads.WORDS
    )
    assert said(opened, ".name") == "Layer 2, head 1"
    weights = opened.run(
        "() => { const f = document.querySelector('exformer-heads'); "
        "return f.words().slice(0, -1).map((_, word) => f.weightsOf(f.chosen, word)); }"
    )
    assert torch.allclose(torch.tensor(weights), torch.tensor(heads.WEIGHTS), atol=0.0051)


def test_the_weights_are_those_of_the_library(opened, model) -> None:
    model, (source, target), _ = model
    ids = [*source.encode(FIRST), source.eos_id]
    with torch.no_grad(), record_attention(model.eval()) as recorded:
        model(torch.tensor([ids]), torch.tensor([[target.bos_id]]))
    shown = opened.run(
        "() => document.querySelector('exformer-heads').whole.rows"
        ".map((layer) => layer.map((head) => [...head]))"
    )
    for layer in range(4):
        ours = torch.tensor(shown[layer]).view(4, len(ids), len(ids))
        assert torch.allclose(ours, recorded[f"encoder.{layer}.self_attention"][0], atol=1e-5)


def test_without_heads_it_translates_as_the_library(opened, model) -> None:
    model, tokenizers, _ = model
    texts = [FIRST, *(pair.source for pair in captions()[:2])]
    for off in ([(1, 1)], [(0, 3), (3, 1)], ALL):
        paths = [f"encoder.{layer}.self_attention {head}" for layer, head in off]
        assert opened.run(RUN, [texts, paths]) == translate(without(model, off), tokenizers, texts)


def test_the_numbers_of_the_caption(opened) -> None:
    texts = [pair.source for pair in captions()]
    whole = opened.run(RUN, [texts, []])

    def kept(off):
        found = opened.run(RUN, [texts, [f"encoder.{layer}.self_attention {head}" for layer, head in off]])
        return sum(a == b for a, b in zip(whole, found, strict=True))

    one = [kept([each]) for each in ALL]
    assert (len(texts), (min(one), max(one)), kept(ALL)) == (heads.CAPTIONS, heads.HEAD_OUT, heads.ALL_OUT)


def test_the_task_names_one_head_and_asks_for_the_other(opened) -> None:
    assert said(opened, ".answer") == ""
    for name, answer in (("1 1", ""), ("2 3", "Found: layer 3, head 4. ")):
        opened.click(f"[data-head='{name}']")
        opened.click(".take")
        assert said(opened, ".german") == WRONG
        assert said(opened, ".german u") == "die"
        assert said(opened, ".before") == f"before: {FOUND}"
        assert said(opened, ".answer").startswith(answer)
        assert bool(said(opened, ".answer")) == bool(answer)
        opened.click(".take")
        assert said(opened, ".german") == FOUND
        assert said(opened, ".answer") == said(opened, ".before") == ""


def test_none_of_the_other_heads_solves_it(opened) -> None:
    for layer, head in ALL:
        if (layer, head) in ((1, 1), (2, 3)):
            continue
        opened.click(f"[data-head='{layer} {head}']")
        opened.click(".take")
        assert said(opened, ".german") == FOUND, (layer, head)
        assert said(opened, ".before") == "as before, word for word"
        assert said(opened, ".answer") == ""
        opened.click(".take")


def test_all_heads_at_once_and_back(opened) -> None:
    opened.click(".all")
    assert said(opened, ".all") == "Put all back"
    assert opened.run("() => document.querySelectorAll('.wall .out').length") == 16
    assert said(opened, ".german") != FOUND
    opened.click(".again")
    assert said(opened, ".german") == FOUND
    assert said(opened, ".name") == "Layer 2, head 1"


def test_the_keys_are_enough_and_a_change_is_said(opened) -> None:
    opened.run("() => document.querySelector(\"[data-head='1 1']\").focus()")
    opened.press("Enter")
    spoken = "() => document.querySelector('exformer-heads > [aria-live]').textContent"
    opened.wait(f"() => ({spoken})().includes('cart looks at cart')")
    opened.run("() => document.querySelector('.take').focus()")
    opened.press("Enter")
    opened.wait(f"() => ({spoken})() === '1 of 16 heads are out. Now: {WRONG}'")


def test_an_empty_and_a_long_caption_are_told(opened) -> None:
    ask = (
        "(text) => { document.querySelector('input').value = text; "
        "document.querySelector('.ask').requestSubmit(); }"
    )
    opened.run(ask, "  ")
    assert "Type an English caption" in said(opened, ".german")
    opened.click(".all")  # nothing to translate, and no harm
    opened.run(ask, "A dog is running through the snow. " * 6)
    assert "Only the first 100 characters" in said(opened, ".hint")
    opened.run(ask, "Ένας dog")
    assert "knows no “Έ”" in said(opened, ".hint")


def test_the_address_brings_the_state_back(opened, chromium) -> None:
    opened.click("[data-head='2 3']")
    opened.click(".take")
    opened.wait("() => location.hash.startsWith('#heads=')")
    other = chromium.page().open(opened.run("() => location.href"))
    other.wait(LIVE)
    assert said(other, ".german") == WRONG
    assert said(other, ".name") == "Layer 3, head 4"
    other.close()
