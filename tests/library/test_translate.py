"""Translation of sentences one by one and together, and what can't be translated."""

import dataclasses

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch_twins import random_model

from exformer.generation import next_token
from exformer.generation import translate as module
from exformer.generation.beam_search import beam_search
from exformer.generation.next_token import Continuation
from exformer.generation.translate import translate
from exformer.models.decoder_lm import DecoderLM, DecoderLMConfig
from exformer.models.encoder_decoder import EncoderDecoder, EncoderDecoderConfig
from exformer.models.rnn_encoder_decoder import RecurrentConfig, RecurrentEncoderDecoder
from exformer.tokenizers.characters_and_words import WordTokenizer

pytestmark = pytest.mark.usefixtures("float64")


SENTENCES = ["the dog slept", "the fox", "the dog saw the dog near the fox", "slept"]
SRC_WORDS = WordTokenizer.from_texts(SENTENCES)
TGT_WORDS = WordTokenizer.from_texts(["il cane dormì la volpe vide"])
TOKENIZERS = (SRC_WORDS, TGT_WORDS)


def build(seed: int = 0, **options) -> EncoderDecoder:
    sizes = {"d_model": 10, "n_heads": 2, "d_ff": 13, "n_layers": 2, "max_len": 11}
    config = EncoderDecoderConfig(SRC_WORDS.vocab_size, TGT_WORDS.vocab_size, **sizes, **options)
    return random_model(EncoderDecoder, config, seed=seed)


def build_recurrent(seed: int = 0) -> RecurrentEncoderDecoder:
    config = RecurrentConfig(SRC_WORDS.vocab_size, TGT_WORDS.vocab_size, d_model=6, max_len=11)
    return random_model(RecurrentEncoderDecoder, config, seed=seed)


@pytest.mark.parametrize("make", [build, build_recurrent])
@settings(max_examples=8)
@given(seed=st.integers(0, 2**20), penalty=st.sampled_from([0.0, 0.6, 1.0]), beam=st.sampled_from([1, 3]))
def test_translate_searches_for_each_sentence_alone(make, seed, penalty, beam):
    model = make(seed)
    options = {"max_new_tokens": 5, "num_beams": beam, "length_penalty": penalty}
    wanted = []
    for sentence in SENTENCES:
        src = torch.tensor([[*SRC_WORDS.encode(sentence), SRC_WORDS.eos_id]])
        [found] = beam_search(
            lambda tgt, src=src: model(src.expand(len(tgt), -1), tgt)[:, -1].detach(),
            torch.tensor([[TGT_WORDS.bos_id]]),
            eos_id=2,
            **options,
        )
        wanted.append(TGT_WORDS.decode(found.ids))
    assert translate(model, TOKENIZERS, SENTENCES, **options) == wanted


def batches(monkeypatch) -> list[tuple[int, int]]:
    """Note the shapes of the batches that are translated."""
    shapes = []

    def note(model, src, tokenizer, **numbers):
        shapes.append(tuple(src.shape))
        return translate_batch(model, src, tokenizer, **numbers)

    translate_batch = module._translate_batch
    monkeypatch.setattr(module, "_translate_batch", note)
    return shapes


def test_many_sentences_come_back_in_their_order(monkeypatch):
    model = build(15)
    sentences = ["the dog saw", "", "the fox", "the dog saw the fox", " ", "fox", "dog slept"]
    wanted = [translate(model, TOKENIZERS, one, num_beams=2, max_new_tokens=5) for one in sentences]
    assert wanted[1] == wanted[4] == ""  # nothing is invented for an empty one
    assert len(set(wanted)) > 3
    shapes = batches(monkeypatch)
    for many in (sentences, iter(sentences)):
        found = translate(model, TOKENIZERS, many, num_beams=2, max_new_tokens=5, batch_size=2)
        assert found == wanted
    assert shapes == [(2, 3), (2, 4), (1, 6)] * 2  # those of like length together, with the end token
    assert translate(model, TOKENIZERS, []) == []
    assert translate(model, TOKENIZERS, "") == ""


def test_fewer_sentences_at_once_with_a_wide_beam(monkeypatch):
    model, shapes = build(15), batches(monkeypatch)
    monkeypatch.setattr(next_token, "_CACHED_POSITIONS", 3 * 7 * 5)
    translate(model, TOKENIZERS, ["fox"] * 9, num_beams=7, max_new_tokens=5)
    assert shapes == [(3, 2)] * 3
    translate(model, TOKENIZERS, ["fox"] * 2, num_beams=40, max_new_tokens=5)  # one always is
    assert shapes[3:] == [(1, 2)] * 2


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
        ({"batch_size": -1}, "batch_size must be at least 1, got -1"),
        ({"max_new_tokens": 0}, "max_new_tokens must be at least 1, got 0"),
        ({"num_beams": -1}, "num_beams must lie from 1 to 10,000, got -1"),
        ({"num_beams": 2, "length_penalty": -0.5}, r"length_penalty must lie from 0 to 10, got -0\.5"),
        ({"n_best": 2}, r"n_best must be at most num_beams \(1\), got 2"),
    ],
)
def test_numbers_that_no_search_can_follow(numbers, message):
    with pytest.raises(ValueError, match=message):
        translate(build(), TOKENIZERS, SENTENCES, **numbers)


def test_too_long_sentence_is_refused_first(monkeypatch):
    monkeypatch.setattr(module, "_translate_batch", None)
    long = " ".join(["the"] * 11)
    message = r"sentence 3 is longer than the model's max_len \(11\): 12 tokens with the end.* '(the ){10}'$"
    with pytest.raises(ValueError, match=message):
        translate(build(), TOKENIZERS, ["the fox", "", long])


def test_translate_refuses_what_does_not_translate():
    model = DecoderLM(DecoderLMConfig(SRC_WORDS.vocab_size, d_model=4, n_heads=2, d_ff=4))
    with pytest.raises(ValueError, match=r"expected an encoder-decoder .* got DecoderLM: .* generate\(\)"):
        translate(model, TOKENIZERS, "the fox")


@pytest.mark.usefixtures("unchecked_shapes")
def test_translate_needs_two_tokenizers():
    with pytest.raises(ValueError, match=r"tokenizer must be the pair \(source, target\)"):
        translate(build(), SRC_WORDS, "the fox")


def test_translate_switches_dropout_off_and_on_again():
    model = build(dropout=0.5)
    wanted = translate(model, TOKENIZERS, SENTENCES)
    model.train()
    for _ in range(3):
        assert translate(model, TOKENIZERS, SENTENCES) == wanted
    assert all(module.training for module in model.modules())


@pytest.mark.parametrize(("asked", "calls"), [(None, 11), (3, 3), (11, 11), (1000, 11)])
def test_translation_ends_at_the_smaller_limit(asked, calls, monkeypatch):
    model, lengths = build(tie_output=False), []
    nn.init.zeros_(model.output.weight)  # all logits are 0: the end token, 2, is never the first best
    score = Continuation.__call__
    monkeypatch.setattr(
        Continuation, "__call__", lambda self, tgt: (lengths.append(tgt.size(1)), score(self, tgt))[1]
    )
    translate(model, TOKENIZERS, SENTENCES, max_new_tokens=asked)
    assert lengths == list(range(1, calls + 1))


def test_unknown_words_are_named():
    with pytest.raises(ValueError, match=r"sentence 2: .*unknown ones: 'dgo' .*'dog'"):
        translate(build(), TOKENIZERS, ["the fox", "the dgo"])


def test_translate_takes_a_sentence_of_the_longest_length():
    assert translate(build(), TOKENIZERS, " ".join(["the"] * 10))


@pytest.mark.parametrize("side", ["src", "tgt"])
def test_translate_refuses_a_tokenizer_of_another_model(side):
    more = WordTokenizer.from_texts(["one two three four five six seven eight nine ten eleven twelve"])
    message = rf"the {side} tokenizer has {more.vocab_size} tokens and pad_id 0, the model was made for"
    with pytest.raises(ValueError, match=message):
        translate(build(), (more, TGT_WORDS) if side == "src" else (SRC_WORDS, more), SENTENCES)
    config = dataclasses.replace(build().config, pad_id=3)
    with pytest.raises(ValueError, match=r"the src tokenizer has .* and pad_id 0, .* and 3: give the"):
        translate(EncoderDecoder(config), TOKENIZERS, SENTENCES)


def test_n_best_translations():
    model = build(15)
    options = {"num_beams": 4, "max_new_tokens": 5}
    best = translate(model, TOKENIZERS, SENTENCES, **options)
    several = translate(model, TOKENIZERS, SENTENCES, n_best=3, **options)
    assert [texts[0] for texts in several] == best
    assert all(len(texts) == 3 for texts in several)
    assert translate(model, TOKENIZERS, SENTENCES[0], n_best=3, **options) == several[0]
    assert translate(model, TOKENIZERS, ["fox", ""], n_best=1) == [
        [translate(model, TOKENIZERS, "fox")],
        [""],
    ]


@pytest.mark.parametrize("make", [build, build_recurrent])
def test_compiled_model_translates(make):
    model = make(3)
    compiled = torch.compile(model, backend="eager")
    assert translate(compiled, TOKENIZERS, SENTENCES) == translate(model, TOKENIZERS, SENTENCES)


@pytest.mark.usefixtures("unchecked_shapes")
def test_wrong_types_are_named():
    with pytest.raises(ValueError, match=r"got the name 'x': load it with load_model\('x'\)"):
        translate("x", TOKENIZERS, "fox")
    with pytest.raises(ValueError, match="sentence 2 must be a string, got None"):
        translate(build(), TOKENIZERS, ["fox", None])
    for penalty in ("1", None):
        with pytest.raises(ValueError, match="length_penalty must be a number, got "):
            translate(build(), TOKENIZERS, "fox", num_beams=2, length_penalty=penalty)
    model = build()
    assert translate(model, list(TOKENIZERS), "fox") == translate(model, TOKENIZERS, "fox")
