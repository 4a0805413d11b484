"""Prompts of unequal lengths: padding in front, and the same texts as one by one."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from test_decoder_lm import ALL_POSITIONS, VOCAB, build
from torch_twins import close, randomize

from exformer.data.padding import count_padding, pad_left
from exformer.generation.next_token import next_logits_of
from exformer.generation.sampling import best_token, greedy
from exformer.models.rnn_lm import RecurrentLM

pytestmark = pytest.mark.usefixtures("float64")
ROWS = [[5, 16, 3, 7, 0], [6], [11, 0, 2]]  # 0 is the padding, and a token like any other inside a text
PADDED = [[5, 16, 3, 7, 0], [0, 0, 0, 0, 6], [0, 0, 11, 0, 2]]


def test_padding_in_front_by_hand():
    ids = pad_left(ROWS, pad_id=0)
    assert ids.tolist() == PADDED
    assert count_padding(ids, pad_id=0).tolist() == [0, 4, 2]
    assert count_padding(ids, pad_id=None).tolist() == [0, 0, 0]
    assert count_padding(ids, pad_id=5).tolist() == [1, 0, 0]
    for pad_id in (0, None):
        assert count_padding(ids, pad_id=pad_id).dtype == torch.int64


@pytest.mark.usefixtures("unchecked_shapes")
@pytest.mark.parametrize("pad_id", [0, None])
def test_padding_is_counted_of_a_batch_only(pad_id):
    with pytest.raises(ValueError, match=r"ids must be \(batch, position\), got the shape \(2,\)"):
        count_padding(torch.tensor([0, 4]), pad_id=pad_id)


@pytest.mark.parametrize("rows", [[[1], []], [[]]])
def test_prompt_without_a_token(rows):
    with pytest.raises(ValueError, match=r"at least one token, got the lengths \["):
        pad_left(rows, pad_id=0)
    with pytest.raises(ValueError, match=r"got the lengths \[\]"):
        pad_left([], pad_id=0)


def test_a_prompt_of_padding_is_refused():
    with pytest.raises(ValueError, match=r"got one that is padding only \(3\)"):
        count_padding(torch.tensor([[3, 4], [3, 3]]), pad_id=3)


@pytest.mark.usefixtures("unchecked_shapes")
def test_one_text_is_a_batch_of_one():
    with pytest.raises(
        ValueError, match=r"ids must be \(batch, position\), got the shape \(2,\): one text is ids"
    ):
        next_logits_of(build())(torch.tensor([3, 4]))


def test_the_best_token_by_hand():
    assert best_token(torch.tensor([[0.0, 1.0], [-math.inf, -5.0], [2.0, 2.0]])).tolist() == [1, 1, 0]


def models(seed: int = 0):
    """Give a language model of each kind, by name."""
    recurrent = RecurrentLM(VOCAB, d_model=6, cell="lstm").eval()
    randomize(recurrent, seed=seed)
    found = {positions: build(seed, positions=positions) for positions in ALL_POSITIONS}
    return found | {"recurrent": recurrent}


@pytest.mark.parametrize("name", models())
def test_padding_in_front_changes_no_score(name):
    model = models()[name]
    got = next_logits_of(model, pad_id=0)(torch.tensor(PADDED))
    assert not got.requires_grad
    for row, scores in zip(ROWS, got, strict=True):
        close(scores, model(torch.tensor([row]))[0, -1].detach())


@pytest.mark.parametrize("name", models())
@settings(max_examples=3)
@given(
    rows=st.lists(st.lists(st.integers(1, VOCAB - 1), min_size=1, max_size=5), min_size=2, max_size=4),
    eos_id=st.integers(0, VOCAB - 1),
    seed=st.integers(0, 99),
)
def test_batch_is_generated_as_one_by_one(name, rows, eos_id, seed):
    model = models(seed)[name]
    limits = {"eos_id": eos_id, "max_new_tokens": 4}
    together = greedy(next_logits_of(model, pad_id=0), pad_left(rows, pad_id=0), **limits)
    alone = [greedy(next_logits_of(model), torch.tensor([row]), **limits)[0] for row in rows]
    assert together == alone


def test_a_prompt_longer_than_the_model_is_refused():
    with pytest.raises(ValueError, match="the text has 12 tokens and max_len is 11"):
        greedy(next_logits_of(build()), torch.ones(1, 12, dtype=torch.int64), eos_id=0, max_new_tokens=1)
