"""Greedy decoding against a loop written out, and evaluation mode for a while."""

from threading import Barrier, Thread

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch_twins import normal

from exformer.generation.sampling import greedy
from exformer.nn.eval_mode import evaluating

pytestmark = pytest.mark.usefixtures("float64")


def chain(following: list[int]):
    """Give next_logits that always choose `following[last token]`."""
    table = torch.eye(len(following))[following]
    return lambda ids: table[ids[:, -1]]


def test_greedy_by_hand():
    # 1 -> 3 -> 4 -> 0 and then the end token, 2; what would follow that is 3 again.
    assert greedy(chain([2, 3, 3, 4, 0]), torch.tensor([[1]]), eos_id=2, max_new_tokens=9) == [[3, 4, 0]]
    assert greedy(chain([2, 3, 3, 4, 0]), torch.tensor([[1]]), eos_id=2, max_new_tokens=2) == [[3, 4]]
    assert greedy(chain([2, 3, 3, 4, 0]), torch.tensor([[1], [0]]), eos_id=2, max_new_tokens=9) == [
        [3, 4, 0],
        [],
    ]


def by_loop(next_logits, prompt: list[int], *, eos_id: int, max_new_tokens: int) -> list[int]:
    """Append the best token to one sequence, with Python's max."""
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
        return last[ids[:, -1]] + first[ids].mean(1)  # all tokens so far count

    limits = {"eos_id": eos_id, "max_new_tokens": max_new_tokens}
    got = greedy(next_logits, prompts, **limits)
    n_calls, seen = len(calls), calls[-1]
    assert got == [by_loop(next_logits, row, **limits) for row in prompts.tolist()]
    assert n_calls == min(max_new_tokens, max(map(len, got)) + 1)  # it stops when all have ended
    assert torch.equal(seen[:, :length], prompts)
    for row, new in zip(seen[:, length:].tolist(), got, strict=True):  # after its end a row stays ended
        assert row == (new + [eos_id] * len(row))[: len(row)]


def test_ended_texts_are_scored_no_more():
    # after token i comes i - 1, and 0 is the end
    following, n_scored = torch.eye(9).roll(1, dims=0), []

    def score(ids):
        n_scored.append(len(ids))
        return following[ids[:, -1]]

    prompts = torch.tensor([[2], [1], [8], [4], [3]])
    limits = {"eos_id": 0, "max_new_tokens": 9}
    wanted = [[1], [], [7, 6, 5, 4, 3, 2, 1], [3, 2, 1], [2, 1]]
    assert greedy(score, prompts, **limits) == wanted
    assert n_scored == [5] * 8
    n_scored.clear()
    score.reorder = lambda rows: n_scored.append(rows.tolist())
    assert greedy(score, prompts, **limits) == wanted
    assert n_scored == [5, 5, [2, 3, 4], 3, [0, 1], 2, [0], 1, 1, 1, 1]


def test_end_token_in_the_prompt_does_not_end():
    assert greedy(chain([1, 0, 1]), torch.tensor([[2]]), eos_id=2, max_new_tokens=3) == [[1, 0, 1]]


def test_greedy_leaves_the_prompts_alone():
    prompts = torch.tensor([[1], [0]])
    greedy(chain([2, 3, 3, 4, 0]), prompts, eos_id=2, max_new_tokens=9)
    assert prompts.tolist() == [[1], [0]]


class SomeError(Exception):
    pass


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("training", [False, True])
def test_evaluating_restores_each_module(training, fails):
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


def test_evaluation_lasts_until_the_last_thread_leaves():
    model, modes = nn.Sequential(nn.Dropout(0.5)), []
    both_inside, first_has_left = Barrier(2, timeout=10), Barrier(2, timeout=10)

    def leave_first():
        with evaluating(model):
            both_inside.wait()
        first_has_left.wait()

    def leave_last():
        with evaluating(model):
            both_inside.wait()
            first_has_left.wait()
            modes.extend((model.training, model[0].training))

    threads = [Thread(target=leave_first), Thread(target=leave_last)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert modes == [False, False]
    assert model.training
    assert model[0].training


def test_nested_evaluation_ends_with_the_outer_one():
    model = nn.Dropout(0.5)
    with evaluating(model):
        with evaluating(model):
            pass
        assert not model.training
    assert model.training
