"""Cached = uncached: the same scores to 1e-10 and the same texts, whatever the positions and the strategy."""

import dataclasses

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from test_decoder_lm import ALL_POSITIONS, IDS, VOCAB, build
from torch_twins import close, random_model

from exformer.data.padding import count_padding, pad_left
from exformer.generation.beam_search import beam_search
from exformer.generation.next_token import Continuation
from exformer.generation.sampling import greedy, keep_top_k, sample
from exformer.models.encoder_decoder import EncoderDecoder, EncoderDecoderConfig

pytestmark = pytest.mark.usefixtures("float64")
ROWS = [[5, 16, 3, 7], [6], [11, 0, 2]]
SIZES = {"d_model": 12, "n_heads": 3, "d_ff": 7, "n_layers": 2, "max_len": 9}
CONFIG = EncoderDecoderConfig(13, 11, pad_id=1, **SIZES)
SRC = torch.tensor([[5, 12, 3, 7, 4], [6, 2, 1, 1, 1], [8, 9, 10, 1, 1]])  # 1 is the padding
TGT = torch.tensor([[0, 3, 1, 7, 9, 4, 2], [0, 6, 10, 2, 1, 1, 8], [0, 5, 5, 1, 9, 6, 3]])


def strategies(seed: int = 0):
    """Give each way of writing a text, from next_logits and prompts to tokens."""

    def by_beam(next_logits, prompts, **limits):
        return [text.ids for text in beam_search(next_logits, prompts, num_beams=3, **limits)]

    def by_chance(next_logits, prompts, **limits):
        options = {
            "generator": torch.Generator().manual_seed(seed),
            "logits_processor": lambda x: keep_top_k(x, 5),
        }
        return sample(next_logits, prompts, **options, **limits)

    return {"greedy": greedy, "sample": by_chance, "beam": by_beam}


def build_translator(seed: int = 0, **changes) -> EncoderDecoder:
    return random_model(EncoderDecoder, dataclasses.replace(CONFIG, **changes), seed=seed)


def uncached(model):
    """Return a function that computes all positions of padded texts anew."""
    return lambda ids: model(ids, padding=count_padding(ids, pad_id=0))[:, -1].detach()


def test_texts_that_their_owner_changes_are_noticed():
    translator = build_translator()
    decoder = Continuation(translator, src=SRC)
    for scores in (Continuation(build()), decoder):
        ids = TGT.clone()
        scores(ids[:, :3])
        ids[0, 1] += 1
        with pytest.raises(ValueError, match="must extend the cached prefix"):
            scores(ids[:, :4])


@pytest.mark.usefixtures("unchecked_shapes")
def test_one_text_is_a_batch_of_one():
    translator = build_translator()
    decoder = Continuation(translator, src=SRC[:1])
    for scores in (Continuation(build()), decoder):
        with pytest.raises(ValueError, match=r"ids must be \(batch, position\), got the shape \(3,\)"):
            scores(torch.tensor([3, 4, 5]))


def test_scores_collect_no_gradients():
    for scores in (Continuation(build())(IDS), Continuation(build_translator(), src=SRC)(TGT)):
        assert not scores.requires_grad


@pytest.mark.parametrize("positions", ALL_POSITIONS)
def test_scores_of_unequal_texts(positions):
    model = build(positions=positions)
    ids = pad_left(ROWS, pad_id=0)
    cached = Continuation(model, pad_id=0)
    for new in (9, 0, 4, 4, 0, 16, 2):  # a later 0 is no padding
        close(cached(ids), uncached(model)(ids))
        ids = torch.cat((ids, torch.full((3, 1), new)), dim=1)
    assert ids.size(1) == model.config.max_len
    close(cached(ids), uncached(model)(ids))


@pytest.mark.parametrize("strategy", strategies())
@pytest.mark.parametrize("positions", ALL_POSITIONS)
@settings(max_examples=3)
@given(
    rows=st.lists(st.lists(st.integers(1, VOCAB - 1), min_size=1, max_size=5), min_size=2, max_size=4),
    eos_id=st.integers(0, VOCAB - 1),
    seed=st.integers(0, 99),
)
def test_texts_of_a_language_model(strategy, positions, rows, eos_id, seed):
    model, write = build(seed, positions=positions), strategies(seed)[strategy]
    prompts, limits = pad_left(rows, pad_id=0), {"eos_id": eos_id, "max_new_tokens": 6}
    wanted = write(uncached(model), prompts, **limits)
    assert write(Continuation(model, pad_id=0), prompts, **limits) == wanted


@pytest.mark.parametrize("strategy", strategies())
@settings(max_examples=4)
@given(seed=st.integers(0, 99), eos_id=st.integers(0, 10))
def test_texts_of_a_translator(strategy, seed, eos_id):
    model, write = build_translator(seed), strategies(seed)[strategy]
    src = SRC.repeat_interleave(3, dim=0) if strategy == "beam" else SRC
    memory, limits = model.encode(src).detach(), {"eos_id": eos_id, "max_new_tokens": 6}
    prompts = torch.zeros(3, 1, dtype=torch.int64)
    wanted = write(lambda tgt: model.decode(tgt, memory=memory, src=src)[:, -1], prompts, **limits)
    assert write(Continuation(model, src=src), prompts, **limits) == wanted


def test_rows_change_places():
    rows = torch.tensor([2, 2, 0])
    model, ids = build(), pad_left(ROWS, pad_id=0)
    cached = Continuation(model, pad_id=0)
    cached(ids)
    cached.reorder(rows)
    longer = torch.cat((ids[rows], torch.tensor([[7], [8], [9]])), dim=1)
    close(cached(longer), uncached(model)(longer))
    translator = build_translator()
    cached = Continuation(translator, src=SRC)
    cached(TGT[:, :3])
    cached.reorder(rows)
    longer = torch.cat((TGT[rows, :3], torch.tensor([[7], [8], [9]])), dim=1)
    close(cached(longer), translator(SRC[rows], longer)[:, -1].detach())


def test_beams_of_a_sentence_share_its_memory():
    translator, each = build_translator(), torch.arange(3).repeat_interleave(2)
    cached = Continuation(translator, src=SRC)
    tgt = torch.cat((TGT[each, :3], torch.arange(4, 10)[:, None]), dim=1)
    close(cached(tgt), translator(SRC[each], tgt)[:, -1].detach())
    for rows in ([1, 0, 2, 2, 5, 4], [5, 0, 1, 2, 3, 3]):  # within the sentences, then beyond
        rows = torch.tensor(rows)
        cached.reorder(rows)
        each, tgt = each[rows], torch.cat((tgt[rows], rows[:, None]), dim=1)
        close(cached(tgt), translator(SRC[each], tgt)[:, -1].detach())


def test_each_position_is_computed_once(monkeypatch):
    model, seen = build(), []
    forward = type(model.layers[0].feed_forward).forward
    monkeypatch.setattr(
        type(model.layers[0].feed_forward),
        "forward",
        lambda self, x: (seen.append(x.size(1)), forward(self, x))[1],
    )
    greedy(Continuation(model), IDS[:, :4], eos_id=VOCAB, max_new_tokens=3)
    assert seen == [4, 4, 1, 1, 1, 1]  # in each of two layers


def test_the_sources_keys_are_computed_once():
    model, calls = build_translator(), []
    model.decoder[0].cross_attention.w_k.register_forward_hook(lambda *_: calls.append("keys"))
    greedy(Continuation(model, src=SRC), TGT[:, :1], eos_id=11, max_new_tokens=4)
    assert calls == ["keys"]


def test_a_model_in_training_is_refused():
    with pytest.raises(ValueError, match=r"without dropout: call model\.eval\(\) first"):
        Continuation(build().train())
    model = build_translator().train()
    with pytest.raises(ValueError, match=r"without dropout: call model\.eval\(\) first"):
        Continuation(model, src=SRC)


@pytest.mark.parametrize("kind", ["language model", "translator"])
def test_other_texts_than_those_of_the_last_call_are_refused(kind):
    if kind == "translator":
        model, src = build_translator(), SRC[:2]
        cached = Continuation(model, src=src)
    else:
        cached = Continuation(build())
    with pytest.raises(ValueError, match="nothing to reorder yet: run the model"):
        cached.reorder(torch.tensor([0, 1]))
    ids = torch.tensor([[0, 3, 2], [5, 4, 2]])
    cached(ids)
    other = torch.tensor([[0, 3, 3, 1], [5, 4, 2, 1]])
    for wrong in (ids, ids[:, :2], other, torch.tensor([[0, 3, 2, 1]])):
        with pytest.raises(
            ValueError, match=r"must extend the cached prefix \(2, 3\) by new .* make a new Continuation"
        ):
            cached(wrong)


def test_texts_that_the_model_cannot_read_are_refused():
    with pytest.raises(ValueError, match=r"padding only \(0\)"):
        Continuation(build(), pad_id=0)(torch.tensor([[0, 0], [0, 1]]))
    with pytest.raises(ValueError, match="nothing to embed"):
        Continuation(build())(torch.zeros(1, 0, dtype=torch.int64))
    model = build_translator()
    with pytest.raises(ValueError, match="there are 3 source sentences and 2 target sentences"):
        Continuation(model, src=SRC)(TGT[:2])
    for wrong in ((model, None), (build(), SRC)):
        with pytest.raises(ValueError, match="src is for an encoder-decoder, which needs it; a"):
            Continuation(wrong[0], src=wrong[1])


@pytest.mark.parametrize("positions", ALL_POSITIONS)
def test_a_text_that_outgrows_max_len_keeps_its_last_half(positions):
    model = build(positions=positions)
    max_len = model.config.max_len
    generator = torch.Generator().manual_seed(3)
    ids = torch.randint(VOCAB, (2, 3), generator=generator)
    score, start = Continuation(model), 0
    for _ in range(3 * max_len):
        if ids.size(1) - start > max_len:
            start = ids.size(1) - max_len // 2
        close(score(ids), model(ids[:, start:])[:, -1].detach())
        ids = torch.cat((ids, torch.randint(VOCAB, (2, 1), generator=generator)), dim=1)
    assert start > 2 * max_len
    rows = torch.tensor([1, 1])
    score.reorder(rows)
    longer = torch.cat((ids[rows, :-1], torch.tensor([[4], [5]])), dim=1)
    close(score(longer), model(longer[:, start:])[:, -1].detach())
    close(Continuation(model)(ids), model(ids[:, -(max_len // 2) :])[:, -1].detach())  # a long prompt


@pytest.mark.parametrize("shorter", [1, 4, 6])  # of its padding two, none and none stay in the context
def test_padding_in_front_leaves_the_context_first(shorter):
    model = build()
    max_len, start = model.config.max_len, 0
    ids = pad_left([[5] * (max_len - 1), [6] * shorter], pad_id=0)
    first = max_len - 1 - shorter  # where the second text begins
    score = Continuation(model, pad_id=0)
    for new in range(3, 11):
        if ids.size(1) - start > max_len:
            start = ids.size(1) - max_len // 2
        got = score(ids)
        close(got[0], model(ids[:1, start:])[0, -1].detach())
        close(got[1], model(ids[1:, max(start, first) :])[0, -1].detach())  # whole, while there is padding
        ids = torch.cat((ids, torch.full((2, 1), new)), dim=1)
    assert start > 0
    assert (start < first) == (shorter == 1)


def test_padding_does_not_count_as_length():
    ids = pad_left([[5] * 11, [6]], pad_id=0)
    close(Continuation(build(), pad_id=0)(ids)[1], build()(torch.tensor([[6]]))[0, 0].detach())


def test_rows_that_change_places_take_their_padding_along():
    model = build(max_len=4)
    cached, fresh = Continuation(model, pad_id=0), Continuation(model, pad_id=0)
    ids = torch.tensor([[0, 0, 5], [7, 8, 9]])
    cached(ids)
    cached.reorder(torch.tensor([0, 0]))
    for new in (3, 4, 6):  # two tokens of padding: a text of four tokens still fits
        ids = torch.cat((ids[[0, 0]], torch.full((2, 1), new)), dim=1)
        scores = cached(ids)
    close(scores, fresh(ids))
