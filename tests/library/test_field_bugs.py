"""What went wrong in other people's trainings, each case named after its symptom."""

import pytest
import torch
from torch.testing import assert_close

from exformer.models.decoder_lm import DecoderLM, DecoderLMConfig
from exformer.nn.loss import cross_entropy, nll
from exformer.training.config import TrainingConfig
from exformer.training.loop import set_seed
from exformer.training.schedules import cosine_schedule, inverse_sqrt_schedule, linear_schedule
from exformer.training.trainer import Trainer

SHORT, LONG = [3, 7, 5], [3, 4, 9, 2, 8, 6, 1, 9, 4]


def model_of(dropout: float = 0.0) -> DecoderLM:
    set_seed(2)
    sizes = {"d_model": 12, "n_heads": 2, "d_ff": 20, "n_layers": 2, "max_len": 13}
    return DecoderLM(DecoderLMConfig(11, dropout=dropout, **sizes))


def padded(width: int) -> torch.Tensor:
    return torch.tensor([[*row, *[0] * (width - len(row))] for row in (SHORT, LONG)])


def gradient(model: DecoderLM) -> torch.Tensor:
    return torch.cat([p.grad.flatten() for p in model.parameters()])


@pytest.mark.usefixtures("float64")
def test_a_short_window_counts_as_much_as_a_long_one() -> None:
    """transformers#34191, nanochat#59: windows of 2 and 8 tokens, each with its own mean."""
    whole, parts = model_of(), model_of()
    whole.loss(padded(9)).backward()
    for row in (SHORT, LONG):
        (parts.loss(torch.tensor([row])) * (len(row) - 1) / 10).backward()
    assert_close(gradient(parts), gradient(whole), rtol=0.0, atol=1e-10)
    means = model_of()
    for row in (SHORT, LONG):
        (means.loss(torch.tensor([row])) / 2).backward()
    assert (gradient(means) - gradient(whole)).norm() > 0.1 * gradient(whole).norm()


@pytest.mark.usefixtures("float64")
def test_more_padding_lowers_the_loss() -> None:
    """The mean over positions: pytorch#73205 for smoothed targets."""
    model = model_of()
    for smoothing in (0.0, 0.2):
        losses = [model.loss(padded(width), label_smoothing=smoothing).item() for width in (9, 11, 14)]
        assert losses == pytest.approx(losses[:1] * 3, abs=1e-12)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("wrong", [0, 2])
def test_targets_are_shifted_twice_or_not_at_all(wrong: int) -> None:
    """nanochat#570 and many others: the data shifts the targets, and the model does so once more."""
    model, ids = model_of(), torch.tensor([LONG])
    once = nll(model(ids[:, :-1]), ids[:, 1:]).mean()
    assert_close(model.loss(ids), once, rtol=0.0, atol=1e-12)
    n = ids.size(1) - wrong
    assert (nll(model(ids[:, :n]), ids[:, wrong:]).mean() - once).abs() > 0.01


def test_dropout_is_on_in_validation() -> None:
    """nanoGPT#240: two evaluations of one model give two numbers."""
    model, batches = model_of(dropout=0.5), [padded(9)] * 4
    trainer = Trainer(model, batches, config=TrainingConfig(steps=2, warmup=1), validation=batches[:1])
    model.train()
    losses = [trainer.validation_loss() for _ in range(2)]
    assert losses[0] == losses[1] == model.eval().loss(batches[0]).item()
    model.train()
    assert model.loss(batches[0]).item() != losses[0]
    trainer.validation_loss()
    assert model.training  # the training goes on with dropout


def test_ignored_targets_alone_give_nan() -> None:
    """nanoGPT#297: the mean over no tokens poisons the optimizer."""
    logits, nothing = torch.zeros(1, 3, 11, requires_grad=True), torch.full((1, 3), -100)
    with pytest.raises(ValueError, match="there is no target but padding"):
        cross_entropy(logits, nothing)


@pytest.mark.parametrize("schedule", [linear_schedule, cosine_schedule, inverse_sqrt_schedule])
def test_the_first_or_the_last_step_has_rate_zero(schedule) -> None:
    """nanoGPT#443: a warm-up that counts from 0 wastes a step."""
    total = {} if schedule is inverse_sqrt_schedule else {"total": 10}
    assert min(schedule(step, peak=1.0, warmup=4, **total) for step in range(1, 11)) > 0.05
