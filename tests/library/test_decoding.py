"""Prompts of unequal lengths: padding in front."""

import math

import pytest
import torch
from test_decoder_lm import build

from exformer.data.padding import count_padding, pad_left
from exformer.generation.next_token import next_logits_of
from exformer.generation.sampling import best_token, greedy

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


def test_a_prompt_longer_than_the_model_is_refused():
    with pytest.raises(ValueError, match="the text has 12 tokens and max_len is 11"):
        greedy(next_logits_of(build()), torch.ones(1, 12, dtype=torch.int64), eos_id=0, max_new_tokens=1)
