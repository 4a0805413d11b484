"""Greedy generation against a loop written out, and translation of sentences one by one."""

import dataclasses

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch_twins import normal, randomize

from exformer.generation import translate as generation
from exformer.generation.autoregressive import greedy
from exformer.generation.beam_search import beam_search
from exformer.generation.cached import CachedDecoder
from exformer.generation.translate import translate
from exformer.models.encoder_decoder import EncoderDecoder, EncoderDecoderConfig
from exformer.models.evaluating import evaluating
from exformer.models.rnn_encoder_decoder import RecurrentConfig, RecurrentEncoderDecoder
from exformer.tokenizers.words import WordTokenizer

pytestmark = pytest.mark.usefixtures("float64")


def chain(following: list[int]):
    """Give next_logits that always choose `following[last symbol]`."""
    table = torch.eye(len(following))[following]
    return lambda ids: table[ids[:, -1]]


def test_greedy_by_hand():
    # 1 -> 3 -> 4 -> 0 and then the end symbol, 2; what would follow that is 3 again.
    assert greedy(chain([2, 3, 3, 4, 0]), torch.tensor([[1]]), eos_id=2, max_new_tokens=9) == [[3, 4, 0]]
    assert greedy(chain([2, 3, 3, 4, 0]), torch.tensor([[1]]), eos_id=2, max_new_tokens=2) == [[3, 4]]
    assert greedy(chain([2, 3, 3, 4, 0]), torch.tensor([[1], [0]]), eos_id=2, max_new_tokens=9) == [
        [3, 4, 0],
        [],
    ]


def by_loop(next_logits, prompt: list[int], *, eos_id: int, max_new_tokens: int) -> list[int]:
    """Append the best symbol to one sequence, with Python's max."""
    ids = list(prompt)
    while len(ids) < len(prompt) + max_new_tokens:
        scores = next_logits(torch.tensor([ids]))[0].tolist()
        best = scores.index(max(scores))
        if best == eos_id:
            break
        ids.append(best)
    return ids[len(prompt) :]


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**20),
    vocab_size=st.integers(2, 11),
    batch=st.integers(1, 5),
    length=st.integers(1, 4),
    max_new_tokens=st.integers(1, 13),
)
def test_greedy_is_the_loop_for_each_sequence(seed, vocab_size, batch, length, max_new_tokens):
    generator = torch.Generator().manual_seed(seed)
    first, last = (normal(vocab_size, vocab_size, seed=seed + n).detach() for n in (0, 1))
    eos_id = int(torch.randint(vocab_size, (), generator=generator))
    prompts = torch.randint(vocab_size, (batch, length), generator=generator)
    calls = []

    def next_logits(ids):
        calls.append(ids)
        return last[ids[:, -1]] + first[ids].mean(1)  # all symbols so far count

    limits = {"eos_id": eos_id, "max_new_tokens": max_new_tokens}
    got = greedy(next_logits, prompts, **limits)
    n_calls, seen = len(calls), calls[-1]
    assert got == [by_loop(next_logits, row, **limits) for row in prompts.tolist()]
    assert n_calls == min(max_new_tokens, max(map(len, got)) + 1)  # it stops when all have ended
    assert torch.equal(seen[:, :length], prompts)
    for row, new in zip(seen[:, length:].tolist(), got, strict=True):  # after its end a row stays ended
        assert row == (new + [eos_id] * len(row))[: len(row)]


def test_an_end_symbol_in_the_prompt_does_not_end():
    assert greedy(chain([1, 0, 1]), torch.tensor([[2]]), eos_id=2, max_new_tokens=3) == [[1, 0, 1]]


def test_greedy_leaves_the_prompts_alone():
    prompts = torch.tensor([[1], [0]])
    greedy(chain([2, 3, 3, 4, 0]), prompts, eos_id=2, max_new_tokens=9)
    assert prompts.tolist() == [[1], [0]]


@pytest.mark.usefixtures("unchecked_shapes")
@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (3,), ()])
def test_greedy_refuses_prompts_without_a_symbol(shape):
    with pytest.raises(ValueError, match=r"\(batch, time\) with at least one token each, got the shape \("):
        greedy(chain([0]), torch.zeros(shape, dtype=torch.int64), eos_id=0, max_new_tokens=1)


@pytest.mark.parametrize("n", [0, -1])
def test_greedy_refuses_to_append_nothing(n):
    with pytest.raises(ValueError, match=f"max_new_tokens must be at least 1, got {n}"):
        greedy(chain([0]), torch.tensor([[0]]), eos_id=0, max_new_tokens=n)


class SomeError(Exception):
    pass


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("training", [False, True])
def test_evaluating_puts_back_what_it_found(training, fails):
    model = nn.Sequential(nn.Dropout(0.5), nn.Sequential(nn.Dropout(0.5)), nn.Linear(2, 2)).train(training)
    model[1].eval()  # a part kept in evaluation mode, as one does with frozen parts
    before = [module.training for module in model.modules()]
    try:
        with evaluating(model):
            assert not any(module.training for module in model.modules())
            assert not model(torch.ones(2)).requires_grad
            if fails:
                raise SomeError
    except SomeError:
        assert fails
    assert [module.training for module in model.modules()] == before
    assert torch.is_grad_enabled()
    assert model(torch.ones(2)).requires_grad


SENTENCES = ["the dog slept", "the fox", "the dog saw the dog near the fox", "slept"]
SRC_WORDS = WordTokenizer.from_texts(SENTENCES)
TGT_WORDS = WordTokenizer.from_texts(["il cane dormì la volpe vide"])
TOKENIZERS = {"src_tokenizer": SRC_WORDS, "tgt_tokenizer": TGT_WORDS}


def build(seed: int = 0, **options) -> EncoderDecoder:
    sizes = {"d_model": 10, "n_heads": 2, "d_ff": 13, "n_layers": 2, "max_len": 11}
    model = EncoderDecoder(
        EncoderDecoderConfig(SRC_WORDS.vocab_size, TGT_WORDS.vocab_size, **sizes, **options)
    )
    randomize(model, seed=seed)
    return model


def build_recurrent(seed: int = 0) -> RecurrentEncoderDecoder:
    sizes = {"d_model": 6, "max_len": 11}
    model = RecurrentEncoderDecoder(RecurrentConfig(SRC_WORDS.vocab_size, TGT_WORDS.vocab_size, **sizes))
    randomize(model, seed=seed)
    return model


@pytest.mark.parametrize("make", [build, build_recurrent])
@settings(max_examples=4)
@given(seed=st.integers(0, 2**20))
def test_translate_is_the_loop_for_each_sentence_alone(make, seed):
    model = make(seed).eval()
    wanted = []
    for sentence in SENTENCES:
        src = torch.tensor([[*SRC_WORDS.encode(sentence), SRC_WORDS.eos_id]])
        ids = by_loop(
            lambda tgt, src=src: model(src, tgt)[:, -1], [TGT_WORDS.bos_id], eos_id=2, max_new_tokens=5
        )
        wanted.append(TGT_WORDS.decode(ids))
    assert translate(model, SENTENCES, **TOKENIZERS, max_new_tokens=5) == wanted


@pytest.mark.parametrize("make", [build, build_recurrent])
@settings(max_examples=4)
@given(seed=st.integers(0, 2**20), alpha=st.sampled_from([0.0, 0.6, 1.0]))
def test_translate_with_a_beam_searches_for_each_sentence_alone(make, seed, alpha):
    model, options = make(seed).eval(), {"max_new_tokens": 4, "beam": 3, "alpha": alpha}
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
    assert translate(model, SENTENCES, **TOKENIZERS, **options) == wanted


def test_many_sentences_come_back_in_their_order(monkeypatch):
    torch.manual_seed(15)
    model, options = build(15), {"beam": 2, "max_new_tokens": 5, **TOKENIZERS}
    sentences = ["the dog saw", "", "the fox", "the dog saw the fox", " ", "fox", "dog slept"]
    wanted = [translate(model, [one], **options)[0] if one.strip() else "" for one in sentences]
    assert len(set(wanted)) > 3
    asked = []

    def translate_these(model, these, **options):
        asked.append(these)
        return translate(model, these, **options)

    monkeypatch.setattr(generation, "translate", translate_these)
    assert generation.translate_many(model, sentences, at_once=2, **options) == wanted
    assert asked == [["fox", "the fox"], ["dog slept", "the dog saw"], ["the dog saw the fox"]]
    assert generation.translate_many(model, [], **TOKENIZERS) == []


@pytest.mark.parametrize("at_once", [0, -1])
def test_many_sentences_are_not_lost_by_translating_none_at_once(at_once):
    with pytest.raises(ValueError, match=f"at_once must be at least 1, got {at_once}"):
        generation.translate_many(build(), SENTENCES, at_once=at_once, **TOKENIZERS)


def test_a_sentence_that_is_too_long_is_found_before_any_is_translated(monkeypatch):
    monkeypatch.setattr(generation, "translate", None)
    long = " ".join(["the"] * 11)
    with pytest.raises(
        ValueError, match=r"sentence 3 is longer than .* \(11\): 12 tokens .* begins 'the the"
    ):
        generation.translate_many(build(), ["the fox", "", long], at_once=1, **TOKENIZERS)


def test_one_string_is_not_many_sentences():
    with pytest.raises(ValueError, match=r"must be a list of sentences, got one string: \['the fox'\]"):
        generation.translate_many(build(), "the fox", **TOKENIZERS)


def test_translate_switches_dropout_off_and_on_again():
    model = build(dropout=0.5)
    wanted = translate(model.eval(), SENTENCES, **TOKENIZERS)
    model.train()
    for _ in range(3):
        assert translate(model, SENTENCES, **TOKENIZERS) == wanted
    assert all(module.training for module in model.modules())


@pytest.mark.parametrize(("asked", "calls"), [(None, 11), (3, 3), (11, 11), (1000, 11)])
def test_translate_writes_as_long_as_asked_and_as_the_model_can(asked, calls, monkeypatch):
    model, lengths = build(tie_output=False).eval(), []
    nn.init.zeros_(model.output.weight)  # all logits are 0: the end symbol, 2, is never the first best
    score = CachedDecoder.__call__
    monkeypatch.setattr(
        CachedDecoder, "__call__", lambda self, tgt: (lengths.append(tgt.size(1)), score(self, tgt))[1]
    )
    translate(model, SENTENCES, **TOKENIZERS, max_new_tokens=asked)
    assert lengths == list(range(1, calls + 1))


@pytest.mark.parametrize(
    ("sentences", "message"),
    [
        (
            "the dog slept",
            r"sentences must be a list of sentences, got one string: \['the dog slept'\] is a list",
        ),
        ([], "at least one id, came 0 sequences"),
        (["the dgo"], "unknown ones: 'dgo' .*'dog'"),
        (
            ["the fox", " ".join(["the"] * 11)],
            r"longer than the model's max_len \(11\): 12 tokens with the end",
        ),
    ],
)
def test_translate_refuses_what_it_cannot_read(sentences, message):
    with pytest.raises(ValueError, match=message):
        translate(build(), sentences, **TOKENIZERS)


def test_translate_refuses_to_write_nothing():
    with pytest.raises(ValueError, match="max_new_tokens must be at least 1, got 0"):
        translate(build(), SENTENCES, **TOKENIZERS, max_new_tokens=0)


def test_translate_refuses_a_beam_without_a_candidate():
    with pytest.raises(ValueError, match="beam must lie from 1 to 10,000, got -1: a beam of 1 is greedy"):
        translate(build(), SENTENCES, **TOKENIZERS, beam=-1)
    with pytest.raises(ValueError, match=r"alpha must lie from 0 to 10, got -0\.5"):
        translate(build(), SENTENCES, **TOKENIZERS, beam=2, alpha=-0.5)


def test_translate_takes_a_sentence_of_the_longest_length():
    assert len(translate(build(), [" ".join(["the"] * 10)], **TOKENIZERS)) == 1


@pytest.mark.parametrize("side", ["src", "tgt"])
def test_translate_refuses_a_tokenizer_of_another_model(side):
    more = WordTokenizer.from_texts(["one two three four five six seven eight nine ten eleven twelve"])
    message = rf"{side}_tokenizer has {more.vocab_size} tokens and pad_id 0, the model was made for"
    with pytest.raises(ValueError, match=message):
        translate(build(), SENTENCES, **(TOKENIZERS | {f"{side}_tokenizer": more}))
    config = dataclasses.replace(build().config, pad_id=3)
    with pytest.raises(ValueError, match=r"src_tokenizer has .* and pad_id 0, .* and 3: give the tokenizer"):
        translate(EncoderDecoder(config), SENTENCES, **TOKENIZERS)
