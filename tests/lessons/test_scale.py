"""Lesson 20: facts and their tails, many trainings at once, the law, its file, and two workers."""

import json
import math
from itertools import chain

import pytest
import torch
import torch.nn.functional as F

from exformer.corpora import real
from exformer_lessons.facts import N_FACTS, N_SYMBOLS, Facts
from exformer_lessons.scale import law, measure, models, shakespeare, workers
from exformer_lessons.scale.evidence import rivals


@pytest.mark.parametrize("tail", [0.25, 0.5, 1.0])
def test_the_tail_of_facts(tail):
    p = Facts(tail=tail).p
    assert p.sum().item() == pytest.approx(1)
    assert (p[0] / p[7]).item() == pytest.approx(8 ** (1 + tail))
    assert len(p) == N_FACTS


def test_sizes_are_counted_right():
    for width in (4, 24):
        assert models.n_parameters(width) == sum(p.numel() for p in models.new_model(width, 0).parameters())
    assert [models.batch_size(n) for n in measure.AMOUNTS] == [32, 45, 64, 91, 128]
    assert models.operations(4, 10) == 6 * 344 * 30


def test_many_models_learn_what_one_learns():
    rates, seeds = (0.04, 0.02), (3, 4)
    facts = [Facts(seed=seed) for seed in seeds]
    many = models.ManyModels(6, seeds)
    start = many.all_logits(facts)[1]
    torch.testing.assert_close(start, models.new_model(6, 4)(facts[1].keys)[:, -1], atol=1e-5, rtol=0)
    many.learn(facts, n_facts=2_048, rates=rates, seeds=seeds)
    for corpus, rate, seed, logits in zip(facts, rates, seeds, many.all_logits(facts), strict=True):
        one = models.learn(corpus, width=6, n_facts=2_048, rate=rate, seed=seed)
        together = (corpus.p * F.cross_entropy(logits, corpus.values, reduction="none")).sum().item()
        assert together == pytest.approx(models.expected_loss(one, corpus), abs=1e-3)


#: Parameters and tokens of nine runs.
N = torch.tensor([300.0, 3_000, 30_000]).double().repeat(3)
D = torch.tensor([1e4, 1e5, 1e6]).double().repeat_interleave(3)


def test_the_law_is_found_again():
    found = law.fit(N, D, law.predict((50.0, 0.7, 12.0, 0.34), N, D))
    assert found == pytest.approx((50, 0.7, 12, 0.34), rel=1e-6)


def test_the_floor_is_found_with_the_law():
    loss = 0.2 + law.predict((50.0, 0.7, 12.0, 0.34), N, D)
    floor, found = law.fit_with_floor(N, D, loss)
    assert (floor, *found) == pytest.approx((0.2, 50, 0.7, 12, 0.34), rel=1e-4)


def test_a_floor_may_be_below_zero():
    loss = law.predict((50.0, 0.7, 12.0, 0.34), N, D) - 0.05
    assert law.fit_with_floor(N, D, loss)[0] == pytest.approx(-0.05, rel=1e-4)


def test_a_memory_is_found_again():
    def remember(n, d):
        no_room = rivals.beyond(Facts().p, rivals.ROOMS[40] * (n / rivals.TYPICAL) ** rivals.POWERS[14])
        return math.log(N_SYMBOLS) * (no_room + rivals.unmet(Facts().p, d, rivals.MEETINGS[20:21])[0])

    error, predicted = rivals.best_memory(N, D, remember(N, D))
    assert error < 1e-8
    torch.testing.assert_close(predicted, remember(*law.columns("budget")[:2]))


def test_a_memory_by_hand():
    p = torch.tensor([0.5, 0.3, 0.2]).double()
    beyond = rivals.beyond(p, torch.tensor([0.0, 1.5, 3, 9]))
    torch.testing.assert_close(beyond, torch.tensor([1, 0.35, 0, 0]).double())
    met = rivals.unmet(p, torch.tensor([30.0]), torch.tensor([2.0]))  # ten facts, two meetings each
    by_hand = 0.5 * math.exp(-2.5) + 0.3 * math.exp(-1.5) + 0.2 * math.exp(-1)
    assert met.item() == pytest.approx(by_hand)


def test_the_best_size_is_the_best():
    each = (51.4, 0.78, 12.4, 0.34)
    n = law.best_size(each, 5e10)
    losses = [law.predict(each, m, 5e10 / 6 / m).item() for m in (0.9 * n, n, 1.1 * n)]
    assert min(losses) == losses[1]


def test_rates_are_swept_beyond_an_edge():
    for right in (0.0025, 0.01, 0.08):
        sweep = measure.around(0.02, 3, lambda rate, right=right: [abs(rate / right - 1)])
        assert measure.best(sweep) == right
        assert min(sweep) < right < max(sweep)


def test_the_file_of_scale_holds_what_the_page_says():
    cells = {part: measure.runs(part) for part in measure.PARTS}
    assert [len(each) for each in cells.values()] == [30, 5, 1, 15, 6]
    for cell in chain.from_iterable(cells.values()):
        rates = sorted(cell["sweep"], key=float)
        assert min(cell["sweep"], key=cell["sweep"].get) not in (rates[0], rates[-1])
        assert len(cell["loss"]) == len(measure.SEEDS)
    assert "0.04" in cells["recommended"][0]["sweep"]  # the rate whose law recommends this size
    assert measure.FILE.stat().st_size < 100_000


def test_what_is_predicted_was_not_fitted():
    n, d, _ = law.columns("grid", most=5e9)
    assert (6 * n * d).max() * 10 < measure.BUDGET * 1.1
    big_n, big_d, _ = law.columns("budget")
    torch.testing.assert_close(
        6 * big_n * big_d, torch.full((5,), measure.BUDGET).double(), rtol=2e-3, atol=0
    )


def test_one_rate_fits_and_recommends_another_size():
    best, same = (law.columns("grid", most=5e9, rate=rate) for rate in ("", "0.04"))
    assert len(best[0]) == len(same[0]) == 26
    sizes = [law.best_size(law.fit(*each), measure.BUDGET) for each in (best, same)]
    assert sizes[1] < 0.7 * sizes[0]
    errors = [(law.predict(law.fit(*each), *each[:2]) / each[2] - 1).square().mean() for each in (best, same)]
    assert errors[1] < errors[0]


def test_shakespeare_is_read_in_pieces(monkeypatch):
    text = "to be or not to be, that is the question. " * 200
    monkeypatch.setattr(shakespeare, "tiny_shakespeare", lambda: (text, text[:400]))
    shakespeare.windows.cache_clear()
    training, validation = shakespeare.windows()
    assert training.shape[1] == validation.shape[1] == shakespeare.LENGTH + 1
    assert torch.equal(training[0, -1], training[1, 0])
    assert shakespeare.learn(4_096, rate=0.01, seed=0) > 0
    shakespeare.windows.cache_clear()
    assert shakespeare.tiny_shakespeare is not real.tiny_shakespeare


def test_the_command_of_scale_writes_named_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(measure, "FILE", tmp_path / "runs.json")
    monkeypatch.setattr(
        measure, "PARTS", {"one": lambda: iter([{"x": [1.23456789]}]), "two": lambda: iter([])}
    )
    measure.main(["one"])
    assert json.loads(measure.FILE.read_text(encoding="utf-8")) == {"one": [{"x": [1.2346]}]}
    assert measure.runs("one") == [{"x": [1.2346]}]


def test_two_workers_take_the_gradient_of_one(tmp_path):
    found = workers.differences(str(tmp_path))
    assert max(found["all-reduce"]) < 1e-12
    assert min(found["two means"]) > 0.1
