"""Masks: who may attend to whom, and the refusal of masks that mean something else."""

import re

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from exformer.nn.masks import causal_mask, check_mask, from_torch_mask, left_padding_mask, padding_mask


def test_causal_mask_by_hand():
    # Position 0 sees itself, position 1 sees 0 and 1, position 2 sees all three.
    wanted = torch.tensor([[True, False, False], [True, True, False], [True, True, True]])
    assert torch.equal(causal_mask(3), wanted)
    assert torch.equal(causal_mask(1), torch.tensor([[True]]))


def test_padding_mask_by_hand():
    # The padding token is 9 here, and it is in the middle as well.
    ids = torch.tensor([[5, 9, 0, 9, 9], [7, 1, 2, 3, 4]])
    wanted = torch.tensor([[[True, False, True, False, False]], [[True] * 5]])
    assert torch.equal(padding_mask(ids, pad_id=9), wanted)


def test_masks_combine_into_one_matrix_a_sentence():
    both = causal_mask(3) & padding_mask(torch.tensor([[5, 6, 7], [5, 0, 0]]), pad_id=0)
    assert both.int().tolist() == [[[1, 0, 0], [1, 1, 0], [1, 1, 1]], [[1, 0, 0], [1, 0, 0], [1, 0, 0]]]


@given(n=st.integers(1, 17))
def test_from_torch_mask_turns_torchs_causal_mask_into_ours(n):
    additive = nn.Transformer.generate_square_subsequent_mask(n)  # 0 and -inf
    assert torch.equal(from_torch_mask(additive), causal_mask(n))
    assert torch.equal(from_torch_mask(additive < 0), causal_mask(n))  # boolean, True = blocked


def test_from_torch_mask_leaves_its_argument_alone():
    theirs = torch.tensor([True, False, True])
    from_torch_mask(theirs)
    assert theirs.tolist() == [True, False, True]


@given(n_queries=st.integers(1, 9), n_earlier=st.integers(0, 9))
def test_queries_of_the_newest_positions_see_all_earlier_keys(n_queries, n_earlier):
    n_keys = n_queries + n_earlier
    assert torch.equal(causal_mask(n_queries, n_keys), causal_mask(n_keys)[n_earlier:])


def test_left_padding_mask_by_hand():
    wanted = [[[True, True, True]], [[False, False, True]], [[False, True, True]]]
    assert left_padding_mask(torch.tensor([0, 2, 1]), 3).tolist() == wanted


@pytest.mark.usefixtures("unchecked_shapes")
@pytest.mark.parametrize(
    ("sizes", "says"),
    [
        ((0,), "n_queries must be at least 1, got 0"),
        ((-3,), "n_queries must be at least 1, got -3"),
        ((3.0,), r"n_queries must be an integer, got 3\.0"),
        (("3",), "n_queries must be an integer, got '3'"),
        ((None,), "n_queries must be an integer, got None"),
        ((3, 4.5), r"n_keys must be an integer, got 4\.5"),
    ],
)
def test_causal_mask_needs_a_number_of_positions(sizes, says):
    with pytest.raises(ValueError, match=says):
        causal_mask(*sizes)


@pytest.mark.usefixtures("unchecked_shapes")
def test_causal_mask_takes_whole_numbers_of_any_type():
    for number in (np.int64, np.uint8, torch.tensor):
        assert torch.equal(causal_mask(number(3)), causal_mask(3))
        assert torch.equal(causal_mask(number(2), number(5)), causal_mask(2, 5))


def test_causal_mask_needs_a_key_for_each_query():
    with pytest.raises(ValueError, match=r"at least as many keys as queries \(3\), got 2"):
        causal_mask(3, 2)


@pytest.mark.usefixtures("unchecked_shapes")
@pytest.mark.parametrize("shape", [(3,), (2, 1, 3)])
def test_padding_mask_needs_a_batch(shape):
    ids = torch.ones(shape, dtype=torch.int64)
    with pytest.raises(
        ValueError, match=r"ids must be \(batch, position\), got the shape .* one sequence is ids"
    ):
        padding_mask(ids, pad_id=0)


@pytest.mark.parametrize("number", [1.0, -1e9, float("inf"), float("nan")])
def test_from_torch_mask_refuses_numbers_that_are_no_mask(number):
    with pytest.raises(ValueError, match="must hold 0 and -inf only; add other numbers to the scores"):
        from_torch_mask(torch.tensor([[0.0, number]]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.uint8])
def test_check_mask_refuses_other_types_and_names_the_way_out(dtype):
    with pytest.raises(
        ValueError, match=r"must be boolean with True = may attend, got torch\..*from_torch_mask"
    ):
        check_mask(torch.zeros(5, 7, dtype=dtype), shape=(5, 7))


@pytest.mark.parametrize("shape", [(5, 7), (1, 7), (5, 1), (1, 1), (3, 5, 7), (1, 5, 7), (3, 1, 7)])
def test_check_mask_accepts_what_fits(shape):
    check_mask(torch.ones(shape, dtype=torch.bool), shape=(3, 5, 7))
    check_mask(None, shape=(3, 5, 7))


@pytest.mark.parametrize(
    ("scores", "shapes"),
    [
        ((3, 5, 7), [(7,), (), (7, 5), (5, 6), (4, 7), (2, 5, 7), (1, 3, 5, 7), (3, 3, 5, 7), (0, 7)]),
        (
            (12, 12, 7),
            [(2, 7), (3, 7), (6, 1), (6, 12, 7), (12, 6, 7)],
        ),  # two rows of twelve are whose?
    ],
)
def test_check_mask_refuses_what_does_not_fit(scores, shapes):
    for shape in shapes:
        with pytest.raises(ValueError, match=rf"must fit scores of the shape {re.escape(str(scores))}.*got"):
            check_mask(torch.ones(shape, dtype=torch.bool), shape=scores)


def test_a_mask_is_made_where_it_is_wanted():
    assert causal_mask(2, 3, device=torch.device("meta")).device.type == "meta"
    assert left_padding_mask(torch.zeros(2, dtype=torch.int64, device="meta"), 3).device.type == "meta"
