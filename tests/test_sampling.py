"""Temperature, top-k and top-p by hand and against loops; draws against their probabilities."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from test_decoder_lm import VOCAB, build
from torch_twins import close, normal

from exformer.data.padding import pad_left
from exformer.generation.autoregressive import next_logits_of
from exformer.generation.sampling import draw, keep_top_k, keep_top_p, sample, temper
from exformer.generation.translate import greedy

pytestmark = pytest.mark.usefixtures("float64")
#: Many equal scores, so that it shows which of equals is kept.
LOGITS = st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=9)


def kept(logits: torch.Tensor) -> list[int]:
    return (logits > -math.inf).nonzero().flatten().tolist()


def test_temperature_by_hand():
    # p = 1/5, 4/5: at T = 2 the odds 1 : 4 become 1 : 2, at T = 1/2 they become 1 : 16.
    logits = torch.tensor([0.2, 0.8]).log()
    close(temper(logits, 2.0).softmax(-1), torch.tensor([1 / 3, 2 / 3]))
    close(temper(logits, 0.5).softmax(-1), torch.tensor([1 / 17, 16 / 17]))
    close(temper(logits, 1.0), logits)


@settings(max_examples=40)
@given(seed=st.integers(0, 2**20), cold=st.floats(0.2, 5.0), ratio=st.floats(1.1, 9.0))
def test_the_entropy_rises_with_the_temperature(seed, cold, ratio):
    def entropy(temperature):
        return torch.distributions.Categorical(logits=temper(logits, temperature)).entropy().item()

    logits = normal(7, seed=seed).detach()
    assert entropy(cold) < entropy(cold * ratio) < math.log(7)
    assert temper(logits, 1e-4).softmax(-1).max() > 0.99
    close(temper(logits, 1e12).softmax(-1), torch.full((7,), 1 / 7))


@pytest.mark.parametrize("temperature", [0.0, -1.0, math.nan, math.inf])
def test_temperatures_without_a_distribution_are_refused(temperature):
    message = f"the temperature must be a number above 0, got {temperature}: .* use generation.greedy"
    with pytest.raises(ValueError, match=message):
        temper(torch.zeros(3), temperature)


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


@pytest.mark.parametrize("k", [0, -1, 4])
def test_a_k_outside_the_vocabulary_is_refused(k):
    with pytest.raises(ValueError, match=rf"k must lie from 1 to the vocabulary's size \(3\), got {k}"):
        keep_top_k(torch.zeros(3), k)


@pytest.mark.parametrize(
    ("p", "wanted"),
    [(0.01, [1]), (0.49, [1]), (0.51, [1, 3]), (0.79, [1, 3]), (0.81, [0, 1, 3]), (1.0, [0, 1, 2, 3])],
)
def test_top_p_by_hand(p, wanted):
    logits = torch.tensor([0.15, 0.5, 0.05, 0.3]).log()
    assert kept(keep_top_p(logits, p)) == wanted
    got = keep_top_p(logits.expand(2, 3, 4), p)  # any axes in front
    assert got.shape == (2, 3, 4)
    close(got[1, 2, wanted], logits[wanted])


@pytest.mark.parametrize(("p", "n"), [(0.25, 1), (0.26, 2), (0.5, 2), (0.75, 3), (0.76, 4)])
def test_top_p_stops_where_the_sum_is_p_itself(p, n):
    """Of four equal symbols each has exactly 1/4, without rounding."""
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


@pytest.mark.parametrize("p", [0.0, -0.1, 1.01, math.nan])
def test_a_p_that_is_no_probability_is_refused(p):
    with pytest.raises(ValueError, match=rf"p must lie in \(0, 1\], got {p}"):
        keep_top_p(torch.zeros(3), p)


def test_draw_by_hand():
    rows = torch.tensor([0.25, 0.0, 0.5, 0.25]).log().expand(7, -1)
    uniform = torch.tensor([0.0, 0.24, 0.26, 0.5, 0.74, 0.76, 1 - 2**-53])
    assert draw(rows, uniform).tolist() == [0, 0, 2, 2, 2, 3, 3]
    assert draw(torch.tensor([[0.0, 1.0]]).log(), torch.tensor([0.0])).tolist() == [1]


@given(logits=LOGITS, uniform=st.floats(0, 1 - 2**-53), data=st.data())
def test_what_is_cut_off_is_never_drawn(logits, uniform, data):
    k = data.draw(st.integers(1, len(logits)))
    cut = keep_top_k(torch.tensor([logits]), k)
    for u in (uniform, 0.0, 1 - 2**-53):
        assert draw(cut, torch.tensor([u])).item() in kept(cut[0])


@pytest.mark.parametrize("uniform", [[0.5, 1.0], [-0.1, 0.5], [math.nan, 0.5], [0.5], [0.5, 0.5, 0.5]])
@pytest.mark.usefixtures("unchecked_shapes")
def test_numbers_that_draw_nothing_are_refused(uniform):
    with pytest.raises(
        ValueError, match="each of the 2 rows needs a number from 0 up to but not including 1"
    ):
        draw(torch.zeros(2, 3), torch.tensor(uniform))


@pytest.mark.parametrize("scores", [[-math.inf, -math.inf], [0.0, math.nan], [0.0, math.inf]])
def test_scores_without_a_distribution_are_refused(scores):
    with pytest.raises(ValueError, match="must give a distribution: some are not numbers, or no symbol"):
        draw(torch.tensor([[0.0, 0.0], scores]), torch.tensor([0.5, 0.5]))


def bigrams(vocab_size: int, seed: int = 0):
    """Give next_logits that look at the last symbol only, and their table."""
    table = normal(vocab_size, vocab_size, seed=seed).detach()
    return (lambda ids: table[ids[:, -1]]), table


def test_shares_of_samples_are_the_models_probabilities():
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


def test_a_seed_reproduces_and_the_global_one_is_left_alone():
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
def test_a_batch_is_drawn_as_one_by_one(rows, seed):
    model = build(seed, positions="learned")
    options = {"eos_id": 2, "max_new_tokens": 5, "change": lambda logits: keep_top_p(logits, 0.9)}
    prompts = pad_left(rows, pad_id=0)
    generator = torch.Generator().manual_seed(seed)
    together = sample(next_logits_of(model, pad_id=0), prompts, generator=generator, **options)
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
        last = next(symbol for symbol, total in enumerate(summed) if total > u)
        if last == 0:
            break
        wanted.append(last)
    assert found == [wanted]


@pytest.mark.parametrize(
    "change", [lambda x: keep_top_k(x, 1), lambda x: keep_top_p(x, 1e-6), lambda x: temper(x, 1e-5)]
)
def test_the_narrowest_choice_is_greedy(change):
    next_logits, _ = bigrams(11)
    options = {"eos_id": 2, "max_new_tokens": 8}
    prompts = torch.arange(11)[:, None]
    found = sample(next_logits, prompts, **options, generator=torch.Generator(), change=change)
    assert found == greedy(next_logits, prompts, **options)


def test_sample_refuses_what_greedy_refuses():
    options = {"eos_id": 0, "generator": torch.Generator()}
    for shape in ((0, 3), (2, 0)):
        with pytest.raises(ValueError, match="with at least one symbol each, got the shape"):
            sample(bigrams(3)[0], torch.zeros(shape, dtype=torch.int64), max_new_tokens=1, **options)
    with pytest.raises(ValueError, match="max_new_tokens must be at least 1, got 0"):
        sample(bigrams(3)[0], torch.tensor([[1]]), max_new_tokens=0, **options)
