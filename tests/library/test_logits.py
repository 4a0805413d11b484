"""What changes a distribution before a token is chosen: by hand, against loops, and in which order."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_twins import close, normal

from exformer.generation.sampling import (
    Sampling,
    apply_temperature,
    keep_min_p,
    keep_top_k,
    keep_top_p,
    penalize_repetition,
)

pytestmark = pytest.mark.usefixtures("float64")
#: Many equal scores, so that it shows which of equals is kept.
LOGITS = st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=9)


def kept(logits: torch.Tensor) -> list[int]:
    return (logits > -math.inf).nonzero().flatten().tolist()


def test_temperature_by_hand():
    # p = 1/5, 4/5: at T = 2 the odds 1 : 4 become 1 : 2, at T = 1/2 they become 1 : 16.
    logits = torch.tensor([0.2, 0.8]).log()
    close(apply_temperature(logits, 2.0).softmax(-1), torch.tensor([1 / 3, 2 / 3]))
    close(apply_temperature(logits, 0.5).softmax(-1), torch.tensor([1 / 17, 16 / 17]))
    close(apply_temperature(logits, 1.0), logits)


@settings(max_examples=40)
@given(seed=st.integers(0, 2**20), cold=st.floats(0.2, 5.0), ratio=st.floats(1.1, 9.0))
def test_the_entropy_rises_with_the_temperature(seed, cold, ratio):
    def entropy(temperature):
        return torch.distributions.Categorical(logits=apply_temperature(logits, temperature)).entropy().item()

    logits = normal(7, seed=seed).detach()
    assert entropy(cold) < entropy(cold * ratio) < math.log(7)
    assert apply_temperature(logits, 1e-4).softmax(-1).max() > 0.99
    close(apply_temperature(logits, 1e12).softmax(-1), torch.full((7,), 1 / 7))


def penalize(logits, penalty):
    return penalize_repetition(logits[None], torch.zeros(1, 1, dtype=torch.int64), penalty)


@pytest.mark.parametrize(
    ("change", "wrong", "message"),
    [
        (
            apply_temperature,
            (0.0, -1.0, math.nan, math.inf),
            "temperature must be a number above 0, got {}: .* use greedy decoding",
        ),
        (keep_top_k, (0, -1), "top_k must be at least 1, got {}"),
        (keep_top_p, (0.0, -0.1, 1.01, math.nan), r"top_p must lie in \(0, 1\], got {}"),
        (keep_min_p, (-0.1, 1.01, math.nan), r"min_p must lie in \[0, 1\], got {}"),
        (
            penalize,
            (0.0, -1.0, 1e-300, 101.0, math.nan, math.inf),
            "repetition_penalty must lie from 0.01 to 100, got {}",
        ),
    ],
)
def test_numbers_outside_their_range_are_refused(change, wrong, message):
    for number in wrong:
        with pytest.raises(ValueError, match=message.format(number)):
            change(torch.zeros(3), number)


def test_top_k_by_hand():
    logits = torch.tensor([[0.1, 0.7, -2.0, 0.3], [3.0, 2.0, 1.0, 0.0]])
    inf = math.inf
    assert keep_top_k(logits, 2).tolist() == [[-inf, 0.7, -inf, 0.3], [3.0, 2.0, -inf, -inf]]
    assert keep_top_k(logits, 4).tolist() == logits.tolist()
    assert logits.isfinite().all()  # the argument is left alone
    assert kept(keep_top_k(torch.zeros(5), 3)) == [0, 1, 2]


@given(logits=LOGITS, data=st.data())
def test_top_k_is_the_head_of_a_sorted_list(logits, data):
    k = data.draw(st.integers(1, len(logits)))
    got = keep_top_k(torch.tensor([logits]), k)[0]
    wanted = sorted(range(len(logits)), key=lambda i: -logits[i])[:k]
    assert kept(got) == sorted(wanted)
    assert all(got[i] == logits[i] for i in wanted)


def test_top_k_above_the_vocabulary_keeps_all():
    logits = torch.tensor([[1.0, 3.0, 2.0]])
    assert torch.equal(keep_top_k(logits, 4), logits)
    assert torch.equal(Sampling(top_k=10**6).transform(logits), logits)


@pytest.mark.parametrize(
    ("keep", "p", "wanted"),
    [
        *((keep_top_p, p, [1]) for p in (0.01, 0.49)),
        *((keep_top_p, p, [1, 3]) for p in (0.51, 0.79)),
        *((keep_top_p, p, wanted) for p, wanted in ((0.81, [0, 1, 3]), (1.0, [0, 1, 2, 3]))),
        *((keep_min_p, p, [0, 1, 2, 3]) for p in (0.0, 0.09)),
        *((keep_min_p, p, wanted) for p, wanted in ((0.11, [0, 1, 3]), (0.31, [1, 3]))),
        *((keep_min_p, p, [1]) for p in (0.61, 1.0)),
    ],
)
def test_top_p_and_min_p_by_hand(keep, p, wanted):
    logits = torch.tensor([0.15, 0.5, 0.05, 0.3]).log() + 3.0  # a shift of all logits changes no probability
    assert kept(keep(logits, p)) == wanted
    got = keep(logits.expand(2, 3, 4), p)  # any axes in front
    assert got.shape == (2, 3, 4)
    close(got[1, 2, wanted], logits[wanted])


@pytest.mark.parametrize(("p", "n"), [(0.25, 1), (0.26, 2), (0.5, 2), (0.75, 3), (0.76, 4)])
def test_top_p_stops_where_the_sum_is_p_itself(p, n):
    """Of four equal tokens each has exactly 1/4, without rounding."""
    assert kept(keep_top_p(torch.zeros(4), p)) == list(range(n))


@given(logits=LOGITS, p=st.floats(0.001, 1.0))
def test_top_p_is_the_smallest_set_that_reaches_p(logits, p):
    probabilities = torch.tensor(logits).softmax(-1).tolist()
    total, wanted = 0.0, []
    for i in sorted(range(len(logits)), key=lambda i: -logits[i]):
        if total >= p and p < 1:
            break
        total += probabilities[i]
        wanted.append(i)
    got = kept(keep_top_p(torch.tensor([logits]), p)[0])
    if abs(total - p) > 1e-9 or p == 1:  # else rounding decides
        assert got == sorted(wanted)


def test_a_p_of_1_keeps_what_rounding_would_lose():
    logits = torch.tensor([0.0, 0.0, 0.0, -200.0])
    assert kept(keep_top_p(logits, 1.0)) == [0, 1, 2, 3]


@given(logits=LOGITS, p=st.floats(0.001, 1.0))
def test_min_p_keeps_what_is_p_times_as_probable_as_the_best(logits, p):
    probabilities = torch.tensor(logits).softmax(-1)
    ratio = probabilities / probabilities.max()
    if (ratio - p).abs().min() > 1e-9 or p == 1:  # else rounding decides
        assert kept(keep_min_p(torch.tensor([logits]), p)[0]) == (ratio >= p).nonzero().flatten().tolist()


def test_repetition_by_hand():
    logits = torch.tensor([[3.0, -3.0, 0.0, 6.0], [3.0, -3.0, 0.0, 6.0]])
    ids = torch.tensor([[0, 1, 1], [3, 2, 3]])  # what comes twice is penalized once
    assert penalize_repetition(logits, ids, 1.5).tolist() == [[2.0, -4.5, 0.0, 6.0], [3.0, -3.0, 0.0, 4.0]]
    assert penalize_repetition(logits, ids, 1.0).tolist() == logits.tolist()
    assert logits[0].tolist() == [3.0, -3.0, 0.0, 6.0]  # the argument is left alone


def test_temperature_acts_before_top_p_and_min_p():
    logits = torch.tensor([0.5, 0.3, 0.15, 0.05]).log()
    # At T = 2 the probabilities are about 0.39, 0.30, 0.21, 0.12: 0.7 is reached by three, at T = 1 by two.
    assert kept(Sampling(top_p=0.7).transform(logits)) == [0, 1]
    assert kept(Sampling(temperature=2.0, top_p=0.7).transform(logits)) == [0, 1, 2]
    # The third has 0.3 of the best one's probability at T = 1, and 0.55 at T = 2.
    assert kept(Sampling(min_p=0.5).transform(logits)) == [0, 1]
    assert kept(Sampling(temperature=2.0, min_p=0.5).transform(logits)) == [0, 1, 2]


def test_top_p_judges_what_top_k_has_left():
    logits = torch.tensor([0.4, 0.3, 0.2, 0.1]).log()
    # Of two, the best has 4/7 > 0.5; of all four it has 0.4, so that the second would be kept, too.
    assert kept(Sampling(top_k=2, top_p=0.5).transform(logits)) == [0]
    assert kept(keep_top_k(keep_top_p(logits, 0.5), 2)) == [0, 1]


@settings(max_examples=30)
@given(seed=st.integers(0, 2**20), temperature=st.floats(0.3, 3), k=st.integers(1, 7), p=st.floats(0.01, 1.0))
def test_each_number_does_what_its_function_does(seed, temperature, k, p):
    logits = normal(2, 7, seed=seed).detach()
    close(Sampling(temperature=temperature).transform(logits), apply_temperature(logits, temperature))
    assert torch.equal(Sampling(top_k=k).transform(logits), keep_top_k(logits, k))
    assert torch.equal(Sampling(top_p=p).transform(logits), keep_top_p(logits, p))
    assert torch.equal(Sampling(min_p=p).transform(logits), keep_min_p(logits, p))
    assert torch.equal(Sampling().transform(logits), logits)


def test_top_p_sums_in_double_precision():
    # The first token has 1 - 6·10⁻⁹, which float32 rounds to 1.
    logits = torch.tensor([20.0, 0.0, 0.0, 0.0], dtype=torch.float32)
    assert keep_top_p(logits, 1 - 1e-9).isfinite().all()


@pytest.mark.parametrize("temperature", [5e-324, 1e-300, 1e-40, 1e-8, 1e-3])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_tiny_temperatures_are_greedy(temperature, dtype):
    logits = torch.tensor([[3.0, 900.0, -math.inf, 880.0, -5.0]], dtype=dtype)
    assert apply_temperature(logits, temperature).softmax(-1).tolist() == [[0.0, 1.0, 0.0, 0.0, 0.0]]


@pytest.mark.usefixtures("unchecked_shapes")
@pytest.mark.parametrize("name", Sampling.names())
@pytest.mark.parametrize("value", ["0.8", [0.8], b"1", True])
def test_settings_of_sampling_are_numbers(name, value):
    kind = "an integer" if name == "top_k" else "a number"
    with pytest.raises(ValueError, match=f"{name} must be {kind}, got "):
        Sampling(**{name: value})


def test_a_penalty_without_a_text():
    with pytest.raises(ValueError, match="a repetition_penalty needs the ids of the text so far"):
        Sampling(repetition_penalty=1.2).transform(torch.zeros(1, 3))
