"""Draws against their probabilities, and whole texts against the loop written out."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from test_decoder_lm import VOCAB, build
from test_logits import LOGITS
from torch_twins import normal

from exformer.data.padding import pad_left
from exformer.generation.next_token import Continuation, next_logits_of
from exformer.generation.sampling import (
    apply_temperature,
    best_token,
    draw,
    greedy,
    keep_top_k,
    keep_top_p,
    sample,
)

pytestmark = pytest.mark.usefixtures("float64")


def test_draw_by_hand():
    rows = torch.tensor([0.25, 0.0, 0.5, 0.25]).log().expand(7, -1)
    uniform = torch.tensor([0.0, 0.24, 0.26, 0.5, 0.74, 0.76, 1 - 2**-53])
    assert draw(rows, uniform).tolist() == [0, 0, 2, 2, 2, 3, 3]
    assert draw(torch.tensor([[0.0, 1.0]]).log(), torch.tensor([0.0])).tolist() == [1]


@given(logits=LOGITS, uniform=st.floats(0, 1 - 2**-53), data=st.data())
def test_cut_tokens_are_never_sampled(logits, uniform, data):
    k = data.draw(st.integers(1, len(logits)))
    cut = keep_top_k(torch.tensor([logits]), k)
    for u in (uniform, 0.0, 1 - 2**-53):
        assert cut[0, draw(cut, torch.tensor([u]))].isfinite().all()


@pytest.mark.parametrize("uniform", [[0.5, 1.0], [-0.1, 0.5], [math.nan, 0.5], [0.5], [0.5, 0.5, 0.5]])
@pytest.mark.usefixtures("unchecked_shapes")
def test_random_numbers_outside_0_to_1(uniform):
    with pytest.raises(
        ValueError, match="each of the 2 rows needs a number from 0 up to but not including 1"
    ):
        draw(torch.zeros(2, 3), torch.tensor(uniform))


@pytest.mark.parametrize("scores", [[-math.inf, -math.inf], [0.0, math.nan], [0.0, math.inf]])
@pytest.mark.parametrize("choose", [best_token, lambda logits: draw(logits, torch.tensor([0.5, 0.5]))])
def test_scores_without_a_distribution_are_refused(scores, choose):
    with pytest.raises(ValueError, match="must give a distribution: some are not numbers, or no token"):
        choose(torch.tensor([[0.0, 1.0], scores]))


def bigrams(vocab_size: int, seed: int = 0):
    """Give next_logits that look at the last token only, and their table."""
    table = normal(vocab_size, vocab_size, seed=seed).detach()
    return (lambda ids: table[ids[:, -1]]), table


def test_sample_frequencies_are_the_probabilities():
    next_logits, table = bigrams(5)
    generator = torch.Generator().manual_seed(3)
    options = {"eos_id": 4, "max_new_tokens": 2, "generator": generator}
    found = sample(next_logits, torch.ones(20_000, 1, dtype=torch.int64), **options)
    first, second = table[1].softmax(-1), table.softmax(-1)
    for a in range(5):
        for b in range(5):
            text = [] if a == 4 else [a] if b == 4 else [a, b]
            wanted = first[a] if a == 4 else first[a] * second[a, b]
            assert found.count(text) / 20_000 == pytest.approx(wanted.item(), abs=0.015)


def test_seed_reproduces_without_the_global_generator():
    next_logits, _ = bigrams(11)
    options = {"eos_id": 0, "max_new_tokens": 9}
    prompts = torch.arange(1, 9)[:, None]
    before = torch.get_rng_state()
    first, again, other = (
        sample(next_logits, prompts, **options, generator=torch.Generator().manual_seed(seed))
        for seed in (5, 5, 6)
    )
    assert first == again != other
    assert torch.equal(torch.get_rng_state(), before)


@settings(max_examples=6)
@given(
    rows=st.lists(st.lists(st.integers(1, VOCAB - 1), min_size=1, max_size=6), min_size=1, max_size=5),
    seed=st.integers(0, 99),
)
def test_batch_is_sampled_as_one_by_one(rows, seed):
    model = build(seed, positions="learned")
    options = {"eos_id": 2, "max_new_tokens": 5, "logits_processor": lambda logits: keep_top_p(logits, 0.9)}
    prompts = pad_left(rows, pad_id=0)
    generator = torch.Generator().manual_seed(seed)
    together = sample(Continuation(model, pad_id=0), prompts, generator=generator, **options)
    generator.manual_seed(seed)
    one = {"generator": generator, **options}
    assert together == [sample(next_logits_of(model), torch.tensor([row]), **one)[0] for row in rows]


@given(seed=st.integers(0, 2**20), vocab_size=st.integers(2, 11))
def test_sampling_is_the_loop(seed, vocab_size):
    next_logits, table = bigrams(vocab_size, seed)
    options = {"eos_id": 0, "max_new_tokens": 7}
    generator = torch.Generator().manual_seed(seed)
    found = sample(next_logits, torch.tensor([[1]]), generator=generator, **options)
    wanted, last = [], 1
    for u in torch.rand(7, generator=generator.manual_seed(seed)).tolist():
        summed = itertools.accumulate(table[last].softmax(-1).tolist())
        last = next(token for token, total in enumerate(summed) if total > u)
        if last == 0:
            break
        wanted.append(last)
    assert found == [wanted]


@pytest.mark.parametrize(
    "change",
    [lambda x: keep_top_k(x, 1), lambda x: keep_top_p(x, 1e-6), lambda x: apply_temperature(x, 1e-5)],
)
def test_the_narrowest_choice_is_greedy(change):
    next_logits, _ = bigrams(11)
    options = {"eos_id": 2, "max_new_tokens": 8}
    prompts = torch.arange(11)[:, None]
    found = sample(next_logits, prompts, **options, generator=torch.Generator(), logits_processor=change)
    assert found == greedy(next_logits, prompts, **options)
