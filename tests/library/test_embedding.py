"""Embeddings: rows of a table, and the way back to scores of tokens."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch_twins import backward, close, copy, normal, randomize, same_gradients, twins

from exformer.nn.embedding import TokenEmbedding, embed

pytestmark = pytest.mark.usefixtures("float64")


def with_table(rows: list[list[float]], **options) -> TokenEmbedding:
    embedding = TokenEmbedding(len(rows), d_model=len(rows[0]), **options)
    with torch.no_grad():
        embedding.weight.copy_(torch.tensor(rows))
    return embedding


def test_embed_by_hand():
    table = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    wanted = [[[5.0, 6.0], [1.0, 2.0], [5.0, 6.0]]]
    assert embed(torch.tensor([[2, 0, 2]]), table).tolist() == wanted


def test_token_embedding_by_hand():
    # d_model = 4, so the rows are multiplied by its root, 2.
    rows = [[1.0, 2.0, 3.0, 4.0], [0.0, -1.0, 0.5, 0.0]]
    assert with_table(rows)(torch.tensor([1, 0])).tolist() == [[0, -2, 1, 0], [2, 4, 6, 8]]
    assert with_table(rows, scale=False)(torch.tensor([1, 0])).tolist() == [rows[1], rows[0]]


def test_logits_by_hand():
    # The dot products of (1, 2) with each row; they are not scaled.
    embedding = with_table([[1.0, 0.0], [0.0, 1.0], [3.0, -1.0]])
    assert embedding.logits(torch.tensor([1.0, 2.0])).tolist() == [1, 2, 1]


@given(seed=st.integers(0, 99))
def test_embedding_is_a_product_with_one_hot_rows(seed):
    ids = torch.randint(13, (5, 3), generator=torch.Generator().manual_seed(seed))
    table = normal(13, 7, seed=seed).detach()
    close(embed(ids, table), F.one_hot(ids, 13).double() @ table)


def test_parity_with_torch():
    ours, theirs = TokenEmbedding(13, d_model=7), nn.Embedding(13, 7)
    randomize(theirs)
    pairs = twins(ours, theirs)
    copy(pairs)
    ids = torch.tensor([[3, 5, 3], [0, 12, 3]])  # 3 comes thrice: its gradients add up
    got, wanted = ours(ids), theirs(ids) * math.sqrt(7)
    close(got, wanted)
    backward(got, ())
    backward(wanted, ())
    same_gradients(pairs)


def test_tied_output_learns_from_both_uses():
    embedding, ids = TokenEmbedding(13, d_model=7), torch.tensor([3])
    embedding.logits(embedding(ids)).sum().backward()
    # d/dE of sum_w E_w · √7 E_3: every row gets √7 E_3, and row 3 gets √7 Σ_w E_w on top.
    wanted = math.sqrt(7) * embedding.weight[3].expand(13, 7).clone()
    wanted[3] += math.sqrt(7) * embedding.weight.sum(0)
    close(embedding.weight.grad, wanted.detach())


def test_scaled_vectors_start_with_variance_one():
    torch.manual_seed(0)
    vectors = TokenEmbedding(1009, d_model=101)(torch.arange(1009))
    assert vectors.var().item() == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize(("ids", "found"), [([0, 13], "0 to 13"), ([-1, 4], "-1 to 4"), ([99], "99 to 99")])
def test_ids_outside_the_vocabulary_are_refused(ids, found):
    message = rf"ids must lie from 0 to 12 \(vocab_size 13\), got {found}: was another tokenizer used\?"
    with pytest.raises(ValueError, match=message):
        TokenEmbedding(13, d_model=7)(torch.tensor(ids))


@pytest.mark.parametrize("shape", [(0, 5), (3, 0), (0,)])
def test_an_empty_batch_is_refused(shape):
    with pytest.raises(ValueError, match=r"nothing to embed: the ids have the shape \("):
        TokenEmbedding(13, d_model=7)(torch.zeros(shape, dtype=torch.int64))
