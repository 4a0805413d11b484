"""Training: one step by hand, and what must not go wrong in silence."""

import math
import random

import numpy as np
import pytest
import torch
from torch import nn

from exformer.models.encoder_decoder import EncoderDecoder, EncoderDecoderConfig
from exformer.nn.loss import cross_entropy
from exformer.training.loop import DivergenceError, Losses, set_seed, train, training_steps


class Weights(nn.Module):
    """Two numbers that start at 1."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Parameter(torch.ones(())), nn.Parameter(torch.ones(()))


def plane(model, batch):
    """Give a loss whose slopes are the two numbers of the batch."""
    return batch[0] * model.a + batch[1] * model.b


def run(batches, *, lr=1.0, loss_fn=plane, **options):
    model = Weights()
    losses = train(
        model, batches, loss_fn=loss_fn, optimizer=torch.optim.SGD(model.parameters(), lr), **options
    )
    return losses, (model.a.item(), model.b.item())


def test_set_seed_sets_all_three_generators():
    drawn = []
    for _ in range(2):
        set_seed(7)
        drawn.append((random.random(), np.random.random(), torch.rand(()).item()))
    assert drawn[0] == drawn[1]
    set_seed(8)
    assert all(
        a != b
        for a, b in zip(drawn[0], (random.random(), np.random.random(), torch.rand(()).item()), strict=True)
    )


def test_one_step_by_hand():
    # a = b = 1, the slopes are 3 and 4, the rate 0.5: the loss is 7, a becomes -0.5 and b -1.
    assert run([(3.0, 4.0)], lr=0.5) == ([7.0], (-0.5, -1.0))


def test_each_step_has_its_own_rate_and_a_gradient_of_its_own():
    # Slope 1 in a: rates 0.5, 0.25, 0.125 take 1 to 0.5, 0.25, 0.125. Were gradients to add up, or were the
    # rate of another step used, it would end elsewhere. The losses are those before each step.
    losses, (a, _) = run([(1.0, 0.0)] * 3, lr=99.0, schedule=lambda step: 0.5**step)
    assert losses == [1.0, 0.5, 0.25]
    assert a == 0.125


def test_a_gradient_left_from_before_does_not_count():
    model = Weights()
    model.a.grad = torch.tensor(100.0)
    train(model, [(1.0, 0.0)], loss_fn=plane, optimizer=torch.optim.SGD(model.parameters(), 0.5))
    assert model.a.item() == 0.5


def test_schedule_reaches_all_groups_of_the_optimizer():
    model = Weights()
    optimizer = torch.optim.SGD([{"params": [model.a], "lr": 3.0}, {"params": [model.b], "lr": 5.0}])
    train(model, [(1.0, 1.0)], loss_fn=plane, optimizer=optimizer, schedule=lambda step: 0.25)
    assert (model.a.item(), model.b.item()) == (0.75, 0.75)


def test_clipping_by_hand():
    # The gradient (3, 4) has length 5. Clipped to 1 it is (0.6, 0.8); a limit of 10 leaves it alone.
    assert run([(3.0, 4.0)], clip_norm=1.0)[1] == pytest.approx((0.4, 0.2), abs=1e-5)
    assert run([(3.0, 4.0)], clip_norm=10.0)[1] == (-2.0, -3.0)
    assert run([(3.0, 4.0)])[1] == (-2.0, -3.0)


def test_clipping_measures_only_what_the_optimizer_updates():
    # The slope of b, which nothing updates, is ten times that of a and adds up: neither shortens a step.
    model = Weights()
    only_a = torch.optim.SGD([model.a], 0.25)
    train(model, [(1.0, 10.0)] * 3, loss_fn=plane, optimizer=only_a, clip_norm=1.0)
    assert model.a.item() == pytest.approx(0.25, abs=1e-5)
    assert model.b.item() == 1.0
    model = Weights()
    groups = [{"params": [model.a]}, {"params": [model.b]}]  # both count
    train(model, [(3.0, 4.0)], loss_fn=plane, optimizer=torch.optim.SGD(groups, 1.0), clip_norm=1.0)
    assert (model.a.item(), model.b.item()) == pytest.approx((0.4, 0.2), abs=1e-5)


@pytest.mark.parametrize("limit", [0.0, -1.0, float("nan"), float("inf")])
def test_a_limit_that_would_stop_or_turn_every_step_is_refused(limit):
    with pytest.raises(ValueError, match=f"clip_norm must be above 0, got {limit}: None sets no limit"):
        run([(3.0, 4.0)], clip_norm=limit)


def test_model_is_put_into_training_mode():
    model, modes = Weights().eval(), []

    def loss_fn(model, batch):
        modes.append(model.training)
        return plane(model, batch)

    train(model, [(1.0, 1.0)] * 2, loss_fn=loss_fn, optimizer=torch.optim.SGD(model.parameters(), 0.1))
    assert modes == [True, True]


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_loss_that_is_not_a_number_stops_before_the_step(number):
    model = Weights()
    optimizer = torch.optim.SGD(model.parameters(), 0.5)
    with pytest.raises(ValueError, match=f"the loss is {number} at step 2: lower the learning rate or clip"):
        train(model, [(1.0, 0.0), (number, 0.0)], loss_fn=plane, optimizer=optimizer)
    assert model.a.item() == 0.5


def test_nan_gradient_in_the_last_step():
    def root_at_zero(model, batch):  # the loss is 0, its slope is infinite
        return (model.a - batch).abs().sqrt()

    with pytest.raises(
        ValueError, match="a parameter is NaN or infinite after step 1: lower the learning rate"
    ):
        run([1.0], loss_fn=root_at_zero)


@pytest.mark.parametrize("batches", [[], iter(())])
def test_no_batches_are_refused(batches):
    with pytest.raises(ValueError, match="there were no batches to train on"):
        run(batches)


def test_progress_is_shown_where_it_is_asked_for(capsys):
    run([(1.0, 0.0)])
    assert capsys.readouterr() == ("", "")
    run([(1.0, 0.0)], progress="a title")
    assert "a title" in capsys.readouterr().err


def step_by_step(batches, *, rates=(1.0,), **options):
    """Train a and b, each by an optimizer of its own if there are two rates; give losses and numbers."""
    model = Weights()
    parameters = [[model.a], [model.b]] if len(rates) == 2 else [[model.a, model.b]]
    optimizers = [
        (torch.optim.SGD(some, 99.0), lambda step, rate=rate: rate * step)
        for some, rate in zip(parameters, rates, strict=True)
    ]
    losses = Losses()
    for _ in training_steps(model, batches, loss_fn=plane, optimizers=optimizers, losses=losses, **options):
        pass
    return losses.values, (model.a.item(), model.b.item())


def test_each_optimizer_has_its_own_rate():
    assert step_by_step([(1.0, 1.0)], rates=(0.5, 0.25)) == ([2.0], (0.5, 0.75))


def test_later_steps_have_later_rates():
    assert step_by_step([(1.0, 0.0)], rates=(0.125,), first_step=3)[1] == (1 - 3 / 8, 1.0)


def test_a_walk_that_is_not_finished_leaves_the_last_step():
    model = Weights()
    walk = training_steps(
        model,
        [(1.0, 0.0)] * 3,
        loss_fn=plane,
        optimizers=[(torch.optim.SGD(model.parameters(), 0.25), None)],
    )
    assert [next(walk), next(walk)] == [1, 2]
    walk.close()
    assert model.a.item() == 0.5


def test_an_optimizer_of_another_model_is_refused():
    model, earlier = Weights(), Weights()
    wrong = torch.optim.SGD(earlier.parameters(), 0.5)
    with pytest.raises(ValueError, match="an optimizer of the model's parameters, got one that updates none"):
        train(model, [(1.0, 0.0)], loss_fn=plane, optimizer=wrong)
    two = [(torch.optim.SGD([model.a], 0.5), None), (wrong, None)]
    with pytest.raises(ValueError, match=r"got one that updates none of them: make it from model.parameters"):
        next(training_steps(model, [(1.0, 0.0)], loss_fn=plane, optimizers=two))
    train(model, [(1.0, 0.0)], loss_fn=plane, optimizer=torch.optim.SGD([model.a], 0.5))  # a part will do


class OnDevice(torch.Tensor):
    """A tensor that says it is on a GPU, and counts how often it is read."""

    reads = 0

    @property
    def device(self):
        return torch.device("cuda")

    def tolist(self):
        OnDevice.reads += 1
        return super().tolist()


def on_device(number):
    return torch.tensor(number).as_subclass(OnDevice)


def test_losses_of_a_cpu_are_read_at_once():
    losses = Losses()
    losses.append(torch.tensor(0.5))
    assert (losses.values, losses.all_read) == ([0.5], True)


def test_losses_of_a_device_are_read_together():
    losses = Losses(read_every=3)
    known = []
    for number in (5.0, 4.0, 3.0, 2.0):
        losses.append(on_device(number))
        known.append((len(losses.values), losses.all_read))
    assert known == [(0, False), (0, False), (3, True), (3, False)]
    losses.read()
    losses.read()
    assert losses.values == [5.0, 4.0, 3.0, 2.0]


def test_divergence_on_a_device_names_the_first_step():
    losses = Losses(first_step=7)
    for number in (1.0, math.nan, math.inf):
        losses.append(on_device(number))
    with pytest.raises(DivergenceError, match="the loss is nan at step 8: lower the learning rate or clip"):
        losses.read()


def test_train_reads_the_last_losses_of_a_device():
    losses, _ = run(
        [(1.0, 0.0)] * 20, lr=0.5, loss_fn=lambda model, batch: plane(model, batch).as_subclass(OnDevice)
    )
    assert losses == [1.0 - 0.5 * step for step in range(20)]


def test_no_steps_are_none():
    assert step_by_step([]) == ([], (1.0, 1.0))


def learn_to_copy(seed: int) -> tuple[list[float], dict[str, torch.Tensor]]:
    """Train a tiny model to copy three symbols."""
    set_seed(seed)
    config = EncoderDecoderConfig(11, 11, d_model=16, n_heads=2, d_ff=32, n_layers=1, max_len=5, dropout=0.1)
    model = EncoderDecoder(config)

    def loss_fn(model, src):
        tgt_in = torch.cat((torch.ones_like(src[:, :1]), src[:, :-1]), dim=1)
        return cross_entropy(model(src, tgt_in), src, pad_id=0)

    batches = [torch.randint(3, 11, (64, 3)) for _ in range(80)]
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    return train(model, batches, loss_fn=loss_fn, optimizer=optimizer, clip_norm=1.0), model.state_dict()


def test_loss_falls_and_the_same_seed_gives_the_same_training():
    losses, state = learn_to_copy(seed=0)
    assert losses[0] > 0.9 * math.log(11)
    assert sum(losses[-5:]) / 5 < 0.5 * losses[0]
    again, same_state = learn_to_copy(seed=0)
    assert losses == again
    assert all(torch.equal(state[name], same_state[name]) for name in state)


def test_partly_nan_parameter_in_the_last_step():
    layer = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(layer.parameters(), 1.0)
    with pytest.raises(DivergenceError, match="a parameter is NaN or infinite after step 1"):
        train(
            layer,
            [0],
            loss_fn=lambda model, _: model.weight[0, 0].sub(model.weight[0, 0].detach()).abs().sqrt(),
            optimizer=optimizer,
        )


def test_an_optimizer_may_have_parameters_of_another_model_too():
    model, other = Weights(), Weights()
    both = torch.optim.SGD([*model.parameters(), *other.parameters()], 0.5)
    train(model, [(1.0, 0.0)], loss_fn=plane, optimizer=both)
    assert (model.a.item(), other.a.item()) == (0.5, 1.0)


def test_a_walk_without_batches_names_the_step_before_it():
    model = Weights()
    with torch.no_grad():
        model.a.fill_(math.nan)
    optimizers = [(torch.optim.SGD(model.parameters(), 1.0), None)]
    with pytest.raises(DivergenceError, match="after step 6"):
        list(training_steps(model, [], loss_fn=plane, optimizers=optimizers, first_step=7))
