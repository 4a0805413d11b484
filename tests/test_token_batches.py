"""Batches of about equally many tokens: nothing lost, nothing twice, the same for any number of processes."""

from itertools import islice

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from exformer.data import sampler
from exformer.data.sampler import TokenBatches, split_steps
from exformer.data.translation import Seq2SeqBatch
from exformer.data.windows import TextWindows

LENGTHS = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=60)


def sentences(lengths, *, tokens=20, seed=0):
    """Make sentences of such lengths; all symbols of a row are its number, from 1, and padding is 0."""
    numbers = torch.arange(1, len(lengths) + 1)[:, None]
    src, tgt = (
        numbers * (torch.arange(9) < torch.tensor([pair[side] for pair in lengths])[:, None])
        for side in (0, 1)
    )
    return TokenBatches(Seq2SeqBatch(src, tgt, tgt), np.array(lengths), tokens, seed)


@given(lengths=LENGTHS, tokens=st.integers(1, 40), seed=st.integers(0, 5), epoch=st.integers(0, 3))
def test_an_epoch_has_each_sentence_once_and_no_batch_too_much(lengths, tokens, seed, epoch):
    source = sentences(lengths, tokens=tokens, seed=seed)
    batches = source.epoch(epoch)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    for rows in batches:
        batch = source.batch(rows)
        assert batch.tgt_in.numel() <= tokens or len(rows) == 1
        assert (batch.src != 0).sum(dim=1).tolist() == [lengths[row][0] for row in rows]
        assert source.n_targets(rows) == (batch.tgt_out != 0).sum() == sum(lengths[row][1] for row in rows)
        assert batch.src.size(1) == max(lengths[row][0] for row in rows)


def test_batches_are_nearly_full():
    rng = np.random.default_rng(0)
    source = sentences(rng.integers(1, 10, size=(2000, 2)).tolist(), tokens=200)
    batches = source.epoch(0)
    real = sum(map(source.n_targets, batches))
    assert real > 0.85 * 200 * len(batches)


def test_each_epoch_and_each_seed_has_an_order_of_its_own():
    lengths = [(3, 4)] * 40
    orders = {
        tuple(np.concatenate(sentences(lengths, seed=seed).epoch(epoch)).tolist())
        for seed in (0, 1)
        for epoch in (0, 1)
    }
    assert len(orders) == 4
    again = np.concatenate(sentences(lengths, seed=1).epoch(1)).tolist()
    assert tuple(again) in orders


@given(lengths=LENGTHS, done=st.integers(0, 30), windows=st.booleans())
def test_going_on_is_as_if_never_cut(lengths, done, windows):
    source = sentences(lengths)
    if windows:
        source = TextWindows(torch.arange(30), 5, 3, seed=len(lengths))
    whole = [rows.tolist() for rows in islice(source.steps(), done + 5)]
    assert [rows.tolist() for rows in islice(source.steps(done=done), 5)] == whole[done:]


@given(lengths=LENGTHS, accumulate=st.integers(1, 3), processes=st.integers(1, 3))
def test_parts_are_the_batch(lengths, accumulate, processes):
    source = sentences(lengths)
    walks = [
        split_steps(source, accumulate=accumulate, process=number, processes=processes)
        for number in range(processes)
    ]
    for rows in islice(source.steps(), 4):
        parts = [part for walk in walks for part in next(walk)]
        assert len(parts) == accumulate * processes
        seen = [row - 1 for part in parts if part.share for row in part.batch.src[:, 0].tolist()]
        assert sorted(seen) == sorted(rows.tolist())
        for part in parts:
            own = (part.batch.tgt_out != 0).sum().item()
            assert part.share in (0, pytest.approx(own / source.n_targets(rows)))
        assert sum(part.share for part in parts) == pytest.approx(1)


def test_windows_are_cut_anywhere():
    source = TextWindows(torch.arange(100, 112), 4, 50, seed=1)
    batch = source.batch(next(source.steps()))
    assert batch.shape == (50, 5)
    assert torch.equal(batch, batch[:, :1] + torch.arange(5))
    assert set(batch[:, 0].tolist()) == set(range(100, 108))  # the last window ends with the text
    assert source.n_targets(np.zeros(7, dtype=np.int64)) == 28


def test_windows_of_each_seed_and_step_are_sampled_independently():
    found = [
        tuple(rows.tolist())
        for seed in range(5)
        for rows in islice(TextWindows(torch.arange(10_000), 4, 3, seed=seed).steps(), 5)
    ]
    assert len(set(found)) == len(found)


def test_mistakes():
    with pytest.raises(ValueError, match="at least one token per batch and one sentence, got 0 tokens and 1"):
        sentences([(1, 1)], tokens=0)
    with pytest.raises(ValueError, match=r"the text \(5 tokens\) must be longer than the width"):
        TextWindows(torch.arange(5), 5, 1, seed=0)
    for sizes, says in (
        ((0, 1), "width must be at least 1, got 0"),
        ((1, -1), "batch_size must be at least 1, got -1"),
    ):
        with pytest.raises(ValueError, match=says):
            TextWindows(torch.arange(5), *sizes, seed=0)
    for options in ({"accumulate": 0}, {"process": 2, "processes": 2}, {"process": -1}, {"done": -1}):
        with pytest.raises(
            ValueError, match="done must be 0 or more, accumulate at least 1 and process below"
        ):
            next(split_steps(sentences([(1, 1)]), **options))


def test_sentences_of_one_length_fill_a_batch():
    assert [len(rows) for rows in sentences([(3, 4)] * 8, tokens=16).epoch(0)] == [4, 4]


def test_as_many_sentences_are_sorted_together_as_fill_20_batches():
    """20 · 13 / 3 is nearly 87: as one piece these make 22 batches of at most 4, as 86 and 1 they make 23."""
    assert len(sentences([(3, 3)] * 87, tokens=13).epoch(0)) == 22
    assert len(sentences([(3, 3)] * 88, tokens=13).epoch(0)) == 23


def test_a_piece_is_of_the_mean_length_and_at_least_one_sentence(monkeypatch):
    """20 · 4 / 2 is 40, the mean of 1, 1, 1 and 5 being 2; of one long sentence less than one."""
    monkeypatch.setattr(sampler, "shuffled_batches", lambda *_, piece, rng: [np.array([piece])])
    assert sentences([(1, 1), (1, 1), (1, 1), (1, 5)], tokens=4).epoch(0)[0].tolist() == [40]
    assert sentences([(1, 60)], tokens=1).epoch(0)[0].tolist() == [1]


def test_the_micro_batches_of_later_steps_are_those_of_a_whole_walk():
    source = sentences([(1, width) for width in range(1, 9)] * 3)
    whole, later = split_steps(source), split_steps(source, done=2)
    for wanted, got in zip(islice(whole, 2, 6), later, strict=False):
        assert torch.equal(got[0].batch.src, wanted[0].batch.src)


def test_the_last_process_is_one_of_them():
    shares = [
        next(split_steps(sentences([(2, 2)] * 4), process=each, processes=2))[0].share for each in (0, 1)
    ]
    assert shares == [0.5, 0.5]
