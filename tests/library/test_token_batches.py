"""Batches of about equally many tokens: nothing lost, nothing twice, the same for any number of processes."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from exformer.data import translation
from exformer.data.sampler import BatchSampler, split_across_processes
from exformer.data.translation import Seq2SeqBatch, TranslationBatches
from exformer.data.windows import TextWindows

LENGTHS = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=60)


def sentences(lengths, *, tokens=20, seed=0):
    """Make batches by tokens of such lengths; all tokens of a sentence are its number, from 1."""
    numbers = torch.arange(1, len(lengths) + 1)[:, None]
    src, tgt = (
        numbers * (torch.arange(9) < torch.tensor([pair[side] for pair in lengths])[:, None])
        for side in (0, 1)
    )
    return TranslationBatches(Seq2SeqBatch(src, tgt, tgt), np.array(lengths), tokens=tokens, seed=seed)


def epoch_of(batches, number):
    return next(islice(batches.epochs(), number, None))


@given(lengths=LENGTHS, tokens=st.integers(1, 40), seed=st.integers(0, 5), epoch=st.integers(0, 3))
def test_an_epoch_has_each_sentence_once_and_no_batch_too_much(lengths, tokens, seed, epoch):
    source = sentences(lengths, tokens=tokens, seed=seed)
    batches = epoch_of(source, epoch)
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
    batches = epoch_of(source, 0)
    real = sum(map(source.n_targets, batches))
    assert real > 0.85 * 200 * len(batches)


def test_each_epoch_and_each_seed_has_an_order_of_its_own():
    lengths = [(3, 4)] * 40
    orders = {
        tuple(np.concatenate(epoch_of(sentences(lengths, seed=seed), epoch)).tolist())
        for seed in (0, 1)
        for epoch in (0, 1)
    }
    assert len(orders) == 4
    again = np.concatenate(epoch_of(sentences(lengths, seed=1), 1)).tolist()
    assert tuple(again) in orders


@given(lengths=LENGTHS, done=st.integers(0, 30), windows=st.booleans())
def test_going_on_is_as_if_never_cut(lengths, done, windows):
    source = sentences(lengths)
    if windows:
        source = TextWindows(torch.arange(30), 5, 3, seed=len(lengths))
    whole = [rows.tolist() for rows in islice(source.steps(), done + 5)]
    assert [rows.tolist() for rows in islice(source.steps(start_step=done), 5)] == whole[done:]


@given(lengths=LENGTHS, accumulate=st.integers(1, 3), processes=st.integers(1, 3))
def test_parts_are_the_batch(lengths, accumulate, processes):
    source = sentences(lengths)
    walks = [
        split_across_processes(source, accumulate=accumulate, process=number, processes=processes)
        for number in range(processes)
    ]
    for rows in islice(source.steps(), 4):
        parts = [part for walk in walks for part in next(walk)]
        assert len(parts) == accumulate * processes
        seen = [row - 1 for part in parts if part.weight for row in part.batch.src[:, 0].tolist()]
        assert sorted(seen) == sorted(rows.tolist())
        for part in parts:
            own = (part.batch.tgt_out != 0).sum().item()
            assert part.weight in (0, pytest.approx(own / source.n_targets(rows)))
        assert sum(part.weight for part in parts) == pytest.approx(1)


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


@pytest.mark.usefixtures("unchecked_shapes")
def test_mistakes():
    with pytest.raises(ValueError, match="tokens must be at least 1, got 0"):
        sentences([(1, 1)], tokens=0)
    one = sentences([(1, 1)])
    with pytest.raises(ValueError, match="expected at least one sentence, got none"):
        replace(one, lengths=one.lengths[:0])
    for sizes in ({"batch_size": 2}, {"tokens": None}):  # both, neither
        with pytest.raises(ValueError, match="expected either batch_size, a number of sentences, or tokens"):
            replace(one, **sizes)
    with pytest.raises(ValueError, match=r"the text \(5 tokens\) must be longer than the width"):
        TextWindows(torch.arange(5), 5, 1, seed=0)
    for ids in ("a string", torch.ones(9), torch.ones(2, 9, dtype=torch.int64)):
        with pytest.raises(ValueError, match=r"an int64 tensor \(position,\), got (str|a tensor \()"):
            TextWindows(ids, 5, 1, seed=0)
    for sizes, says in (
        ((0, 1), "width must be at least 1, got 0"),
        ((1, -1), "batch_size must be at least 1, got -1"),
    ):
        with pytest.raises(ValueError, match=says):
            TextWindows(torch.arange(5), *sizes, seed=0)
    for options in ({"accumulate": 0}, {"process": 2, "processes": 2}, {"process": -1}, {"start_step": -1}):
        with pytest.raises(
            ValueError, match="start_step must be 0 or more, accumulate at least 1 and process below"
        ):
            next(split_across_processes(sentences([(1, 1)]), **options))


def test_sentences_of_one_length_fill_a_batch():
    assert [len(rows) for rows in epoch_of(sentences([(3, 4)] * 8, tokens=16), 0)] == [4, 4]


def test_buckets_of_20_batches_are_sorted():
    """20 · 13 / 3 is nearly 87: as one bucket these make 22 batches of at most 4, as 86 and 1 23."""
    assert len(epoch_of(sentences([(3, 3)] * 87, tokens=13), 0)) == 22
    assert len(epoch_of(sentences([(3, 3)] * 88, tokens=13), 0)) == 23


def test_bucket_size_by_mean_length_and_at_least_1(monkeypatch):
    """20 · 4 / 2 is 40, the mean of 1, 1, 1 and 5 being 2; of one long sentence less than one."""
    monkeypatch.setattr(
        translation, "shuffled_batches", lambda *_, bucket_size, rng: [np.array([bucket_size])]
    )
    assert epoch_of(sentences([(1, 1), (1, 1), (1, 1), (1, 5)], tokens=4), 0)[0].tolist() == [40]
    assert epoch_of(sentences([(1, 60)], tokens=1), 0)[0].tolist() == [1]


def test_micro_batches_from_a_later_step():
    source = sentences([(1, width) for width in range(1, 9)] * 3)
    whole, later = split_across_processes(source), split_across_processes(source, start_step=2)
    for wanted, got in zip(islice(whole, 2, 6), later, strict=False):
        assert torch.equal(got[0].batch.src, wanted[0].batch.src)


def test_the_last_process_is_one_of_them():
    weights = [
        next(split_across_processes(sentences([(2, 2)] * 4), process=each, processes=2))[0].weight
        for each in (0, 1)
    ]
    assert weights == [0.5, 0.5]


def by_sentences(n=10, *, seed=0):
    by_tokens = sentences([(1 + k % 7, 1 + k % 5) for k in range(n)])
    return replace(by_tokens, tokens=None, batch_size=3, seed=seed)


@given(n=st.integers(1, 20), start=st.integers(0, 30), accumulate=st.integers(1, 3))
def test_batches_by_sentences_are_a_sampler(n, start, accumulate):
    batches = by_sentences(n)
    assert isinstance(batches, BatchSampler)
    whole = [rows.tolist() for rows in islice(batches.steps(), start + 5)]
    limited = replace(batches, n_steps=start + 5)
    for each in (batches, limited):
        assert [rows.tolist() for rows in islice(each.steps(start_step=start), 5)] == whole[start:]
    [part, *_] = next(split_across_processes(batches, accumulate=accumulate, process=1, processes=2))
    assert part.batch.src.size(0) >= 1
    walked = [(batch.src[:, 0] - 1).tolist() for batch in limited]
    assert walked == whole  # iteration has the same batches


@given(n=st.integers(1, 20))
def test_length_is_the_number_of_batches_of_an_epoch(n):
    assert len(by_sentences(n)) == len(list(by_sentences(n))) == -(-n // 3)
    by_tokens = sentences([(1, 4)] * n)
    assert len(by_tokens) == len(list(by_tokens)) == -(-n // 5)
