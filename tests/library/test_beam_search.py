"""Beam search by hand, against loops and against all texts there are."""

import itertools
import math
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from test_decoder_lm import VOCAB, build
from torch_twins import normal

from exformer.data.padding import pad_left
from exformer.generation.beam_search import Hypothesis, beam_search, length_normalized
from exformer.generation.exhaustive import exhaustive_search
from exformer.generation.next_token import Continuation, next_logits_of
from exformer.generation.sampling import greedy, sample

pytestmark = pytest.mark.usefixtures("float64")
PENALTIES = st.sampled_from([0.0, 0.6, 1.0, 2.0])
START = torch.tensor([[1]])


def memory(vocab_size: int, seed: int, sharpness: float = 1.0):
    """Give next_logits in which every earlier token counts, and its position too."""
    last, earlier = (normal(vocab_size, vocab_size, seed=seed + n).detach() * sharpness for n in (0, 1))

    def next_logits(ids):
        weight = 1.0 / (1 + torch.arange(ids.size(1)))[:, None]
        return last[ids[:, -1]] + (earlier[ids] * weight).sum(1)

    return next_logits


def tree(branches: dict[tuple[int, ...], list[float]]):
    """Give next_logits from the probabilities after each text; the prompt is one token.

    Rows that no text stands for, those of empty slots, get something that must not count: all for token 1.
    """
    return lambda ids: torch.tensor(
        [branches.get(tuple(row[1:]), [0.0, 1.0, 0.0]) for row in ids.tolist()]
    ).log()


def same(got: Hypothesis, wanted: Hypothesis) -> None:
    assert (got.ids, got.ended) == (wanted.ids, wanted.ended)
    assert got.log_probability == pytest.approx(wanted.log_probability, abs=1e-10)


def test_a_text_ends_at_each_of_several_end_tokens():
    texts = tree({(): [0.3, 0.6, 0.1], (1,): [0.05, 0.05, 0.9], (1, 1): [0.1, 0.1, 0.8]})
    options = {"max_new_tokens": 3, "num_beams": 3, "length_penalty": 0.0, "n_best": 3}
    [found] = beam_search(texts, START, eos_id=[2, 0], **options)
    for text, (ids, p) in zip(found, [([1], 0.54), ([], 0.3), ([], 0.1)], strict=True):
        same(text, Hypothesis(ids, math.log(p), ended=True))


# Greedy takes 0, whose sequels are all poor; the best text begins with 1. The end token is 2.
GARDEN = {
    (): [0.6, 0.4, 0.0],
    (0,): [0.3, 0.3, 0.4],
    (1,): [0.05, 0.05, 0.9],
    (0, 0): [0.4, 0.4, 0.2],
    (0, 1): [0.4, 0.4, 0.2],
    (1, 0): [0.4, 0.4, 0.2],
    (1, 1): [0.4, 0.4, 0.2],
}


def test_a_beam_of_two_sees_what_greedy_misses():
    limits = {"eos_id": 2, "max_new_tokens": 3}
    assert greedy(tree(GARDEN), START, **limits) == [[0]]
    [one] = beam_search(tree(GARDEN), START, num_beams=1, **limits)
    [two] = beam_search(tree(GARDEN), START, num_beams=2, **limits)
    same(one, Hypothesis([0], math.log(0.6 * 0.4), ended=True))
    same(two, Hypothesis([1], math.log(0.4 * 0.9), ended=True))
    same(exhaustive_search(tree(GARDEN), START, **limits)[0][0], two)


# Ending at once has probability 0.4; going on is 0.6 · 0.9 · 0.7 = 0.378.
LONG = {
    (): [0.6, 0.0, 0.4],
    (0,): [0.9, 0.1, 0.0],
    (0, 0): [0.2, 0.1, 0.7],
    (0, 1): [0.2, 0.1, 0.7],
}


@pytest.mark.parametrize(("penalty", "wanted"), [(0.0, []), (0.1, [0, 0]), (1.0, [0, 0])])
def test_length_penalty(penalty, wanted):
    limits = {"eos_id": 2, "max_new_tokens": 3, "length_penalty": penalty}
    [found] = beam_search(tree(LONG), START, num_beams=2, **limits)
    assert found.ids == wanted
    assert found.ended
    same(exhaustive_search(tree(LONG), START, **limits)[0][0], found)


def test_scores_by_hand():
    assert length_normalized(-6.0, n_tokens=4, length_penalty=0.0) == -6.0
    assert length_normalized(-6.0, n_tokens=4, length_penalty=0.5) == -3.0
    assert length_normalized(-6.0, n_tokens=4, length_penalty=1.0) == -1.5
    assert Hypothesis([5, 7, 9], -6.0, ended=True).score(length_penalty=1.0) == -1.5  # the end token counts
    assert Hypothesis([5, 7, 9], -6.0, ended=False).score(length_penalty=1.0) == -2.0
    assert Hypothesis([], -6.0, ended=True).score(length_penalty=1.0) == -6.0


def test_ended_text_leaves_its_slot_empty():
    """After the first step one of two slots has ended; what is second best in the next step is not kept."""
    shy = {
        (): [0.5, 0.1, 0.4],
        (0,): [0.55, 0.45, 0.0],
        (0, 0): [0.5, 0.5, 0.0],
        (0, 1): [0.0, 0.0, 1.0],  # 0.5 · 0.45 · 1 beats 0.5 · 0.55 · 0.5, but (0, 1) finds no slot
        (1,): [0.4, 0.3, 0.3],
        (1, 0): [0.4, 0.3, 0.3],
    }
    limits = {"eos_id": 2, "max_new_tokens": 3, "length_penalty": 1.0}
    [found] = beam_search(tree(shy), START, num_beams=2, **limits)
    assert found.log_probability == pytest.approx(math.log(0.5 * 0.55 * 0.5))
    [wider] = beam_search(tree(shy), START, num_beams=3, **limits)
    same(wider, Hypothesis([0, 1], math.log(0.5 * 0.45), ended=True))


def best_by_loop(next_logits, prompt, *, eos_id, max_new_tokens, num_beams, length_penalty):
    """Search with lists: (log-probability, new tokens) of what goes on, and of what is complete."""
    live, complete, slots = [(0.0, [])], [], num_beams
    for step in range(1, max_new_tokens + 1):
        longer = []
        for total, new in live:
            scores = next_logits(torch.tensor([prompt + new]))[0].log_softmax(-1).tolist()
            longer += [(total + score, [*new, token]) for token, score in enumerate(scores)]
        live = sorted(longer, reverse=True)[:slots]
        ended = [text for text in live if text[1][-1] == eos_id or step == max_new_tokens]
        live = [text for text in live if text not in ended]
        complete, slots = complete + ended, slots - len(ended)
    total, new = max(complete, key=lambda text: text[0] / len(text[1]) ** length_penalty)
    ended = new[-1] == eos_id
    return Hypothesis(new[:-1] if ended else new, total, ended)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**20),
    vocab_size=st.integers(2, 7),
    num_beams=st.integers(1, 9),
    max_new_tokens=st.integers(1, 6),
    batch=st.integers(1, 3),
    penalty=PENALTIES,
)
def test_beam_search_is_the_loop(seed, vocab_size, num_beams, max_new_tokens, batch, penalty):
    next_logits = memory(vocab_size, seed)
    prompts = torch.randint(vocab_size, (batch, 2), generator=torch.Generator().manual_seed(seed))
    options = {
        "eos_id": 1,
        "max_new_tokens": max_new_tokens,
        "num_beams": num_beams,
        "length_penalty": penalty,
    }
    found = beam_search(next_logits, prompts, **options)
    for row, got in zip(prompts.tolist(), found, strict=True):
        same(got, best_by_loop(next_logits, row, **options))


@pytest.mark.parametrize("vocab_size", [641, 703])
@pytest.mark.parametrize("num_beams", [1, 4])
def test_in_a_large_vocabulary_too(vocab_size, num_beams):
    """With many more tokens than beams, the best one may have any id, also one of the last."""
    for seed in range(5):
        sharp = memory(vocab_size, seed, sharpness=0.5)
        prompts = torch.tensor([[1, 2], [3, 4]])

        def next_logits(ids, sharp=sharp, last=seed):
            logits = sharp(ids)
            logits[:, vocab_size - 1 - last] += 2.0  # often among the best
            return logits

        options = {"eos_id": 1, "max_new_tokens": 3, "num_beams": num_beams, "length_penalty": 1.0}
        found = beam_search(next_logits, prompts, **options)
        for row, got in zip(prompts.tolist(), found, strict=True):
            same(got, best_by_loop(next_logits, row, **options))


def test_the_width_of_the_vocabulary_is_too_narrow_at_depth_3():
    """All texts of one token fit into the beam, but not all of two: the best may begin with the worst."""
    late = {(a,): [0.5, 0.5, 0.0] for a in (0, 1)} | {(): [0.52, 0.48, 0.0]}
    late |= {(a, b): [0.5, 0.5, 0.0] for a in (0, 1) for b in (0, 1)} | {(1, 1): [0.0, 1.0, 0.0]}
    late[(1,)] = [0.51, 0.49, 0.0]
    late[(0,)] = [0.5, 0.5, 0.0]
    limits = {"eos_id": 2, "max_new_tokens": 3, "length_penalty": 0.0}
    [best, *_] = exhaustive_search(tree(late), START, **limits)[0]
    assert best.ids == [1, 1, 1]
    assert beam_search(tree(late), START, num_beams=3, **limits)[0].ids != best.ids
    same(beam_search(tree(late), START, num_beams=4, **limits)[0], best)


def test_search_ends_when_no_text_can_win():
    calls = []

    def next_logits(ids):
        calls.append(ids.size(0))
        return torch.tensor([0.05, 0.05, 0.9]).log().expand(len(ids), -1)

    options = {"eos_id": 2, "max_new_tokens": 50, "num_beams": 3}
    [found] = beam_search(next_logits, START, length_penalty=0.0, **options)
    assert (found.ids, calls) == ([], [3])
    calls.clear()
    [found] = beam_search(next_logits, START, length_penalty=1.0, **options)
    assert (found.ids, calls) == ([], [3, 3])  # three tokens of 0.05 and then 47 of 1 would win


def test_search_ends_at_a_tie():
    calls = []

    def next_logits(ids):
        calls.append(len(ids))
        return torch.tensor([0.5, 0.5]).log().expand(len(ids), -1)

    [found] = beam_search(next_logits, START, eos_id=1, max_new_tokens=9, num_beams=2, length_penalty=0.0)
    assert (found.ids, calls) == ([], [2])  # to end and to go on have 0.5 each, and 0.5 · 1 does not win


@settings(max_examples=4)
@given(
    rows=st.lists(st.lists(st.integers(1, VOCAB - 1), min_size=1, max_size=5), min_size=2, max_size=3),
    seed=st.integers(0, 99),
)
def test_a_batch_of_unequal_prompts_is_searched_as_one_by_one(rows, seed):
    model = build(seed, positions="learned")
    options = {"eos_id": 2, "max_new_tokens": 4, "num_beams": 3}
    together = beam_search(Continuation(model, pad_id=0), pad_left(rows, pad_id=0), **options)
    for row, got in zip(rows, together, strict=True):
        same(got, beam_search(next_logits_of(model), torch.tensor([row]), **options)[0])


@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**20),
    vocab_size=st.integers(1, 4),
    depth=st.integers(1, 4),
    penalty=PENALTIES,
)
def test_all_texts_are_there_with_their_probabilities(seed, vocab_size, depth, penalty):
    next_logits = memory(vocab_size, seed)
    prompts = torch.tensor([[0], [vocab_size - 1]])
    options = {"eos_id": 0, "max_new_tokens": depth, "length_penalty": penalty}
    for prompt, texts in zip(
        prompts.tolist(), exhaustive_search(next_logits, prompts, **options), strict=True
    ):
        found = {(*text.ids, *[0] * text.ended): text for text in texts}
        wanted = set()
        for tokens in itertools.product(range(vocab_size), repeat=depth):  # cut each behind its first 0
            wanted.add(tokens[: tokens.index(0) + 1] if 0 in tokens else tokens)
        assert found.keys() == wanted
        assert len(texts) == len(wanted)
        assert sum(math.exp(text.log_probability) for text in texts) == pytest.approx(1.0)
        scores = [text.score(length_penalty=penalty) for text in texts]
        assert scores == sorted(scores, reverse=True)
        for tokens, text in found.items():
            total = 0.0
            for n, token in enumerate(tokens):
                scores = next_logits(torch.tensor([[*prompt, *tokens[:n]]]))[0]
                total += scores.log_softmax(-1)[token].item()
            assert text.log_probability == pytest.approx(total, abs=1e-10)


def test_impossible_texts_are_left_out():
    limits = {"eos_id": 2, "max_new_tokens": 3, "length_penalty": 0.0}
    [texts] = exhaustive_search(tree(LONG), START, **limits)
    assert [text.ids for text in texts][:2] == [[], [0, 0]]
    assert [0] not in [text.ids for text in texts]
    [found] = beam_search(tree(LONG), START, num_beams=9, **limits)
    same(found, texts[0])


SEARCHES = {"beam": partial(beam_search, num_beams=2), "exhaustive": exhaustive_search}
STRATEGIES = SEARCHES | {"greedy": greedy, "sample": partial(sample, generator=torch.Generator())}


@pytest.mark.usefixtures("unchecked_shapes")
@pytest.mark.parametrize("name", STRATEGIES)
def test_prompts_and_lengths_that_no_strategy_takes(name):
    for shape in ((0, 3), (2, 0), (3,), ()):
        prompts = torch.zeros(shape, dtype=torch.int64)
        with pytest.raises(
            ValueError, match=r"\(batch, position\) with at least one token each, got the sha"
        ):
            STRATEGIES[name](memory(3, 0), prompts, eos_id=0, max_new_tokens=2)
    for n in (0, -1):
        with pytest.raises(ValueError, match=f"max_new_tokens must be at least 1, got {n}"):
            STRATEGIES[name](memory(3, 0), START, eos_id=0, max_new_tokens=n)


@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
def test_messages_of_both_searches(search):
    next_logits, limits = memory(3, 0), {"eos_id": 0, "max_new_tokens": 2}
    for penalty in (-0.5, math.nan, math.inf, 10.5):
        with pytest.raises(
            ValueError,
            match=f"length_penalty must lie from 0 to 10, got {penalty}: 0 ignores the length",
        ):
            search(next_logits, START, length_penalty=penalty, **limits)
    for penalty in (0.0, 10.0):  # the ends of the range belong to it
        search(next_logits, START, length_penalty=penalty, **limits)
    message = "the logits must give a distribution: some are not numbers, or no token is left"
    for first, score in itertools.product((1, 2), (math.nan, math.inf, -math.inf)):
        with pytest.raises(ValueError, match=message):
            search(broken_after(first, score), START, **limits)


def broken_after(n: int, score: float):
    """Give next_logits that are all one score, which is no number, from the n-th new token on."""
    return lambda ids: torch.full((len(ids), 3), score if ids.size(1) >= n else 0.0)


def test_scores_of_empty_slots_do_not_count():
    # Nothing may follow the end token, so the row of a text that has ended gets no distribution at all.
    def next_logits(ids):
        logits = torch.tensor([0.3, 0.5, 0.2]).log().expand(len(ids), -1).clone()
        logits[ids[:, -1] == 0] = -math.inf
        return logits

    [found] = beam_search(next_logits, START, eos_id=0, max_new_tokens=4, num_beams=2)
    same(found, Hypothesis([1, 1, 1, 1], 4 * math.log(0.5), ended=False))


def test_half_precision_keeps_the_order_of_the_scores():
    torch.manual_seed(3)
    for _ in range(50):
        logits = (torch.randn(1, 32_000) * 0.5).bfloat16()
        [found] = beam_search(lambda ids, own=logits: own, START, eos_id=-1, max_new_tokens=1, num_beams=1)
        assert logits[0, found.ids[0]] == logits.max()
    texts = exhaustive_search(lambda ids: logits[:, :999], START, eos_id=-1, max_new_tokens=1)[0]
    assert sum(math.exp(text.log_probability) for text in texts) == pytest.approx(1.0, abs=1e-5)


def test_messages_of_each_search():
    limits = {"eos_id": 0, "max_new_tokens": 2}
    for num_beams in (0, -1, 10_001):
        with pytest.raises(ValueError, match=f"num_beams must lie from 1 to 10,000, got {num_beams}"):
            beam_search(memory(3, 0), START, num_beams=num_beams, **limits)
    with pytest.raises(ValueError, match=r"11 tokens give 11\^6 texts, .* \(at most 1,000,000\)"):
        exhaustive_search(memory(11, 0), START, eos_id=0, max_new_tokens=6)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**20),
    vocab_size=st.integers(2, 4),
    depth=st.integers(1, 4),
    n_best=st.integers(1, 9),
    penalty=PENALTIES,
)
def test_n_best_texts_are_those_of_exhaustive_search(seed, vocab_size, depth, n_best, penalty):
    """With a slot for every text, nothing is lost."""
    next_logits, prompts = memory(vocab_size, seed), torch.tensor([[1], [0]])
    options = {"eos_id": 0, "max_new_tokens": depth, "length_penalty": penalty}
    n_texts = max(n_best, vocab_size**depth)
    found = beam_search(next_logits, prompts, num_beams=n_texts, n_best=n_best, **options)
    for got, wanted in zip(found, exhaustive_search(next_logits, prompts, **options), strict=True):
        assert len(got) == min(n_best, len(wanted))
        for one, other in zip(got, wanted, strict=False):
            same(one, other)


def test_the_first_of_n_best_is_the_best():
    for seed in range(20):
        next_logits, options = memory(5, seed), {"eos_id": 0, "max_new_tokens": 6, "num_beams": 4}
        [texts] = beam_search(next_logits, START, n_best=4, **options)
        same(texts[0], beam_search(next_logits, START, **options)[0])
        scores = [text.score(length_penalty=1.0) for text in texts]
        assert len(texts) == 4
        assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("n_best", [0, 3])
def test_n_best_beyond_the_beams(n_best):
    message = r"n_best must be at (most num_beams \(2\), got 3: .* give num_beams too|least 1, got 0)"
    with pytest.raises(ValueError, match=message):
        beam_search(memory(3, 0), START, eos_id=0, max_new_tokens=2, num_beams=2, n_best=n_best)


def test_a_finished_prompt_has_no_more_rows():
    p, n_rows = torch.tensor([[1, 0, 0], [0.97, 0.02, 0.01], [0.02, 0.03, 0.95]]), []  # after each token

    class Scores:
        def __call__(self, ids):
            n_rows.append(len(ids))
            return p[ids[:, -1]].log()

        def reorder(self, rows):
            assert rows.max() < n_rows[-1]

    options = {"eos_id": 0, "max_new_tokens": 4, "num_beams": 2, "length_penalty": 0.0}
    [first, second, third] = beam_search(Scores(), torch.tensor([[1], [2], [1]]), **options)
    same(first, Hypothesis([], math.log(0.97), ended=True))
    same(second, Hypothesis([2, 2, 2, 2], 4 * math.log(0.95), ended=False))
    same(third, first)
    assert n_rows == [6, 2, 2, 2]
