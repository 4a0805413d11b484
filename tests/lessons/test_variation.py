"""A variation changes the steps, learning rates and batch orders of the trainings in its context."""

import pytest
import torch
from torch import nn

from exformer.training.config import TrainingConfig
from exformer.training.loop import train
from exformer.training.trainer import Trainer
from exformer_lessons.variation import Variation, varied_training


class Line(nn.Module):
    """One number that starts at 0."""

    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(torch.zeros(()))


def trace(batches, *, lr=1.0, schedule=None, **variation):
    """Train with a loss whose gradient is the batch; return the batches and the learning rates."""
    model, seen, rates = Line(), [], []
    optimizer = torch.optim.SGD(model.parameters(), lr)

    def loss_fn(model, batch):
        seen.append(batch)
        rates.append(optimizer.param_groups[0]["lr"])
        return batch * model.a

    if variation:
        with varied_training(Variation(**variation)) as trainings:
            train(model, batches, loss_fn=loss_fn, optimizer=optimizer, schedule=schedule)
        assert [(each.optimizer_steps, len(each.losses)) for each in trainings] == [(len(seen), len(seen))]
    else:
        train(model, batches, loss_fn=loss_fn, optimizer=optimizer, schedule=schedule)
    assert optimizer.param_groups[0]["lr"] == (rates[-1] if schedule else lr), "the learning rate is put back"
    return seen, rates


def test_no_variation_outside_of_the_context() -> None:
    assert trace([1, 2, 3]) == ([1, 2, 3], [1.0] * 3)
    with varied_training(Variation(steps=2)):
        pass
    assert trace([1, 2, 3]) == ([1, 2, 3], [1.0] * 3)
    assert trace([1, 2, 3], steps=1) == ([1, 2, 3], [1.0] * 3)


@pytest.mark.parametrize("make", [list, iter, lambda batches: (each for each in batches)])
def test_more_steps_over_the_same_batches_in_other_orders(make) -> None:
    batches = list(range(8))
    seen, rates = trace(make(batches), steps=4)
    turns = [seen[at : at + 8] for at in range(0, 32, 8)]
    assert len(seen) == 32
    assert turns[0] == batches
    assert all(sorted(turn) == batches for turn in turns)
    assert len(set(map(tuple, turns))) == 4
    assert rates == [1.0] * 32


def test_more_steps_over_an_iterator() -> None:
    seen, _ = trace(iter([1, 2, 3]), steps=2)
    assert (seen[:3], sorted(seen[3:])) == ([1, 2, 3], [1, 2, 3])


def test_a_variation_inside_of_another() -> None:
    with varied_training(Variation(rate=2.0)) as trainings:
        assert trace([1], rate=4.0)[1] == [4.0]
        assert trace([1])[1] == [2.0]
    assert len(trainings) == 1


def test_more_steps_over_batches_that_are_sampled_anew() -> None:
    class Drawn:
        def __init__(self):
            self.count = 0

        def __iter__(self):
            for _ in range(3):
                self.count += 1
                yield self.count

    seen, _ = trace(Drawn(), steps=2)
    assert sorted(seen) == [1, 2, 3, 4, 5, 6]


def test_a_stretched_schedule() -> None:
    _, rates = trace([1, 2], schedule=lambda step: {1: 0.5, 2: 0.25}[step], steps=3, rate=2.0)
    assert rates == [1.0] * 3 + [0.5] * 3
    assert trace([1, 2], lr=0.1, rate=3.0)[1] == pytest.approx([0.3, 0.3])


def test_another_order_of_the_same_batches() -> None:
    batches = list(range(10))
    one, two = trace(batches, order=1)[0], trace(batches, order=2)[0]
    assert sorted(one) == sorted(two) == batches
    assert len({tuple(batches), tuple(one), tuple(two)}) == 3
    assert one == trace(batches, order=1)[0]


def test_different_orders_of_two_variations() -> None:
    batches = list(range(8))
    seen = trace(batches, order=1, steps=2)[0] + trace(batches, order=2, steps=2)[0]
    assert len({tuple(seen[at : at + 8]) for at in range(0, 32, 8)}) == 4


def test_rates_of_all_groups_and_after_a_failure() -> None:
    one, two = nn.Parameter(torch.zeros(())), nn.Parameter(torch.zeros(()))
    optimizer = torch.optim.SGD([{"params": [one], "lr": 0.5}, {"params": [two], "lr": 0.25}])
    rates = []

    def loss_fn(model, batch):
        rates.append([group["lr"] for group in optimizer.param_groups])
        raise KeyboardInterrupt

    with varied_training(Variation(rate=4.0)), pytest.raises(KeyboardInterrupt):
        train(nn.ParameterList([one, two]), [1], loss_fn=loss_fn, optimizer=optimizer)
    assert rates == [[2.0, 1.0]]
    assert [group["lr"] for group in optimizer.param_groups] == [0.5, 0.25]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"steps": 0}, "steps must be at least 1, got 0"),
        ({"order": -1}, "order must be at least 0, got -1"),
        ({"rate": 0.0}, "rate must be above 0 and finite, got 0.0"),
        ({"rate": float("nan")}, "rate must be above 0 and finite, got nan"),
        ({"rate": float("inf")}, "rate must be above 0 and finite, got inf"),
    ],
)
def test_errors_of_a_variation(wrong, message) -> None:
    with pytest.raises(ValueError, match=message):
        Variation(**wrong)


def fitted(batches, **variation):
    model, seen, rates = Line(), [], []
    config = TrainingConfig(steps=4, lr=0.1, warmup=2, eval_interval=2, lr_by_module={}, clip_norm=None)

    def loss_fn(model, batch):
        seen.append(batch)
        rates.append(trainer.optimizers[0][0].param_groups[0]["lr"])
        return batch * model.a

    with varied_training(Variation(**variation)) as trainings:
        trainer = Trainer(model, batches, config=config, loss_fn=loss_fn)
        trainer.fit()
    assert max(rates) == pytest.approx(trainer.config.lr)
    return seen, trainer.config, trainings


def test_a_varied_trainer() -> None:
    assert fitted([1, 2, 3])[0] == [1, 2, 3, 1]
    seen, config, trainings = fitted([1, 2, 3], steps=3, rate=2.0)
    assert len(seen) == trainings[0].optimizer_steps == 12
    assert (config.steps, config.warmup, config.eval_interval) == (12, 6, 6)
    assert (config.lr, config.muon_lr) == (0.2, 0.04)
    seen, _, _ = fitted(list(range(20)), order=1)
    assert seen != [0, 1, 2, 3]
    seen, _, _ = fitted([1, 2, 3], order=1)
    assert (sorted(seen[:3]), seen[3]) == ([1, 2, 3], seen[0])  # the list in its new order, again and again
    config = Variation(rate=2.0).config(TrainingConfig(lr_by_module={"output": 0.5}))
    assert config.lr_by_module == {"output": 1.0}


def test_another_seed_of_the_sampler_of_a_trainer() -> None:
    from exformer.data.windows import TextWindows

    windows = TextWindows(torch.arange(30), width=4, batch_size=2, seed=5)
    other = Variation(order=1)
    assert other.batches(windows).seed == 6
    assert Variation(steps=2).batches(windows) is windows

    class Sampler:
        def steps(self, *, done=0): ...
        def batch(self, rows): ...
        def n_targets(self, rows): ...

    with pytest.raises(ValueError, match="expected batches with a seed, got Sampler"):
        other.batches(Sampler())


def test_validation_batches_of_a_varied_trainer() -> None:
    with varied_training(Variation(steps=2, order=1)):
        trainer = Trainer(Line(), [1.0, 2.0], validation=iter([3.0]), loss_fn=lambda model, x: x * model.a)
    assert trainer.validation == [3.0]
    assert (trainer.config.steps, sorted(trainer.batches)) == (4, [1.0, 2.0])
