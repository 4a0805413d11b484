"""Masked tokens: how many, which, shown as what; what is never masked; and what is refused."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from exformer.data.masking import MaskingConfig, mask_tokens
from exformer.nn.loss import cross_entropy

PAD, CLS, END, VOCAB = 0, 1, 2, 43
MASK = VOCAB - 1
CONFIG = MaskingConfig(VOCAB, mask_id=MASK)


def texts(*lengths: int, seed: int = 0) -> torch.Tensor:
    """Make rows of <s>, as many words as asked for, </s>, padding."""
    draw = torch.Generator().manual_seed(seed)
    ids = torch.full((len(lengths), max(lengths) + 2), PAD)
    for row, length in zip(ids, lengths, strict=True):
        row[0], row[length + 1] = CLS, END
        row[1 : length + 1] = torch.randint(3, MASK, (length,), generator=draw)
    return ids


def mask(ids: torch.Tensor, *, seed: int = 0, config: MaskingConfig = CONFIG):
    return mask_tokens(ids, config=config, generator=torch.Generator().manual_seed(seed))


def test_how_many_words_of_each_text():
    found = mask(texts(1, 3, 9, 11, 20, 40)).targets != PAD
    assert found.sum(dim=1).tolist() == [1, 1, 1, 2, 3, 6]  # 15 %, rounded, at least one


def test_masking_is_berts_unless_told_otherwise():
    assert (CONFIG.rate, CONFIG.masked, CONFIG.random) == (0.15, 0.8, 0.1)
    assert (CONFIG.special_ids, CONFIG.pad_id) == ((0, 1, 2), 0)


def test_all_words_and_no_special_symbol():
    ids = texts(5, 13)
    batch = mask(ids, config=MaskingConfig(VOCAB, mask_id=MASK, rate=1.0, masked=1.0, random=0.0))
    word = ids > END
    assert batch.targets.tolist() == ids.where(word, PAD).tolist()
    assert batch.inputs.tolist() == ids.where(~word, MASK).tolist()


def test_every_word_is_chosen_equally_often():
    ids = texts(*[20] * 3000)
    chosen = (mask(ids).targets != PAD)[:, 1:21].float().mean(dim=0)  # one share a place
    assert (chosen - 0.15).abs().max() < 0.03


def test_eighty_ten_ten():
    ids = texts(*[20] * 3000)
    batch = mask(ids)
    chosen = batch.targets != PAD
    shown, was = batch.inputs[chosen], ids[chosen]
    other = (shown != MASK) & (shown != was)
    assert (shown == MASK).float().mean().item() == pytest.approx(0.8, abs=0.02)
    assert (shown == was).float().mean().item() == pytest.approx(0.1 + 0.1 / 39, abs=0.02)
    assert set(shown[other].tolist()) == set(CONFIG.words)
    assert batch.targets[chosen].tolist() == was.tolist()


def test_each_word_of_a_text_has_a_chance_of_its_own():
    ids = texts(500)
    batch = mask(ids, config=MaskingConfig(VOCAB, mask_id=MASK, rate=1.0))
    shown, was = batch.inputs[:, 1:-1], ids[:, 1:-1]
    other = shown[(shown != MASK) & (shown != was)]
    assert (shown == MASK).float().mean().item() == pytest.approx(0.8, abs=0.06)
    assert (shown == was).float().mean().item() == pytest.approx(0.1, abs=0.05)
    assert len(set(other.tolist())) > 15


@pytest.mark.parametrize(("masked", "random"), [(0.0, 1.0), (0.0, 0.0), (0.5, 0.5)])
def test_other_shares(masked, random):
    ids = texts(*[20] * 500)
    batch = mask(ids, config=MaskingConfig(VOCAB, mask_id=MASK, masked=masked, random=random))
    chosen = batch.targets != PAD
    shown, was = batch.inputs[chosen], ids[chosen]
    assert (shown == MASK).float().mean().item() == pytest.approx(masked, abs=0.05)
    assert ((shown != was) & (shown != MASK)).float().mean().item() == pytest.approx(random, abs=0.06)


@given(st.lists(st.integers(1, 30), min_size=1, max_size=6), st.integers(0, 10_000))
def test_nothing_else_changes(lengths, seed):
    ids = texts(*lengths, seed=seed)
    kept = ids.clone()
    batch = mask(ids, seed=seed)
    chosen = batch.targets != PAD
    assert (ids == kept).all()
    assert (batch.inputs[~chosen] == ids[~chosen]).all()
    assert (ids[chosen] > END).all()
    assert chosen.any(dim=1).all()
    assert not torch.isin(batch.inputs[chosen], torch.tensor([PAD, CLS, END])).any()


def test_a_text_without_words_gives_none():
    ids = texts(4, 6)
    ids[0, 1:] = torch.tensor([END] + [PAD] * 6)
    chosen = mask(ids).targets != PAD
    assert chosen.sum(dim=1).tolist() == [0, 1]


def test_the_generator_decides():
    ids = texts(*[20] * 20)
    first, again, other = mask(ids, seed=5), mask(ids, seed=5), mask(ids, seed=6)
    assert (first.inputs == again.inputs).all()
    assert (first.targets == again.targets).all()
    assert (first.targets != other.targets).any()
    one = torch.Generator().manual_seed(5)
    calls = [mask_tokens(ids, config=CONFIG, generator=one) for _ in range(2)]
    assert (calls[0].targets != calls[1].targets).any()  # each call draws anew


def test_targets_fit_the_loss():
    batch = mask(texts(20, 7))
    logits = torch.zeros(*batch.inputs.shape, VOCAB)
    assert cross_entropy(logits, batch.targets, pad_id=PAD).exp().item() == pytest.approx(VOCAB, rel=1e-5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rate": 0.0}, r"rate must lie in \(0, 1\], got 0.0"),
        ({"rate": 1.1}, "got 1.1"),
        ({"masked": 0.8, "random": 0.3}, "sum to at most 1, got 0.8 and 0.3"),
        ({"masked": float("nan")}, "sum to at most 1, got nan and 0.1"),
        ({"random": -0.1}, "0 or more"),
        ({"masked": -0.1}, "0 or more"),
        ({"mask_id": VOCAB}, r"from 0 to 42, got \[43\]"),
        ({"special_ids": (0, -1)}, r"got \[-1\]"),
        ({"pad_id": 7}, r"padding \(7\) is never masked"),
        ({"special_ids": tuple(range(VOCAB))}, "none left that could be masked"),
    ],
)
def test_refused_ways_of_masking(change, message):
    with pytest.raises(ValueError, match=message):
        MaskingConfig(**({"vocab_size": VOCAB, "mask_id": MASK} | change))


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([[1, 43, 2]], "from 0 to 42, got 1 to 43"),
        ([[-1, 3, 2]], "got -1 to 3"),
        ([[1, 42, 2]], r"without the mask token, got one with it \(42\)"),
        ([[1, 2, 0]], "got only special tokens"),
    ],
)
def test_refused_texts(ids, message):
    with pytest.raises(ValueError, match=message):
        mask(torch.tensor(ids))


def test_no_text_is_refused():
    with pytest.raises(ValueError, match="got none"):
        mask(torch.zeros(0, 5, dtype=torch.int64))
