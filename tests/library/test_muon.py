"""Muon: what it makes of singular values, each step by hand, and PyTorch's own."""

import math

import pytest
import torch
from torch import Tensor, nn
from torch_twins import close

from exformer.training.muon import Muon, orthogonalize

SHAPES = [(6, 6), (4, 9), (9, 4), (6, 6), (9, 4)]


def bent(values: Tensor, *, steps: int) -> Tensor:
    """Return what the polynomial makes of singular values, one number at a time."""
    values = values / values.norm()
    for _ in range(steps):
        values = 3.4445 * values - 4.7750 * values**3 + 2.0315 * values**5
    return values


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("shape", [(5, 5), (3, 8), (8, 3)])
@pytest.mark.parametrize("steps", [0, 1, 5])
def test_only_the_singular_values_change(shape: tuple[int, int], steps: int) -> None:
    matrices = torch.randn(4, *shape) * torch.tensor([1.0, 1e-5, 50.0, 0.0])[:, None, None]
    left, values, right = torch.linalg.svd(matrices[:3], full_matrices=False)
    found = orthogonalize(matrices, steps=steps, dtype=torch.float64)
    wanted = torch.stack([bent(each, steps=steps) for each in values])
    close(found[:3], left @ torch.diag_embed(wanted) @ right)
    close(found[3], torch.zeros(shape))


def test_half_precision_is_enough() -> None:
    torch.manual_seed(0)
    found = torch.linalg.svdvals(orthogonalize(torch.randn(3, 16, 40)).float())
    assert found.min() > 0.6
    assert found.max() < 1.25


@pytest.mark.usefixtures("float64")
def test_two_steps_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exformer.training.muon.orthogonalize", lambda x: x)  # what is added, as it is
    wide, tall = nn.Parameter(torch.ones(1, 4)), nn.Parameter(torch.ones(4, 1))
    optimizer = Muon([wide, tall], lr=0.5, momentum=0.75, weight_decay=0.2)
    for slope in (8.0, 16.0):
        for parameter in (wide, tall):
            parameter.grad = torch.full_like(parameter, slope)
        optimizer.step()
    # The mean is 2, then 5.5; ahead of it 3.5, then 8.125. What is tall goes twice as far: √(4/1).
    first = 0.9 - 0.5 * 3.5
    close(wide.detach(), torch.full((1, 4), 0.9 * first - 0.5 * 8.125))
    first = 0.9 - 3.5
    close(tall.detach(), torch.full((4, 1), 0.9 * first - 8.125))


@pytest.mark.skipif(not hasattr(torch.optim, "Muon"), reason="this PyTorch has no Muon")
def test_pytorchs_own_takes_the_same_steps() -> None:
    torch.manual_seed(0)
    ours = [nn.Parameter(torch.randn(shape)) for shape in SHAPES]
    theirs = [nn.Parameter(p.detach().clone()) for p in ours]
    optimizers = (Muon(ours, lr=0.1, weight_decay=0.3), torch.optim.Muon(theirs, lr=0.1, weight_decay=0.3))
    before = [p.detach().clone() for p in ours]
    for _ in range(4):
        for one, other in zip(ours, theirs, strict=True):
            one.grad = torch.randn_like(one)
            other.grad = one.grad.clone()
        for optimizer in optimizers:
            optimizer.step()
    for one, other, start in zip(ours, theirs, before, strict=True):
        assert (one - other).norm() < 0.01 * (one - start).norm()  # bfloat16 rounds in both


def test_each_matrix_by_itself() -> None:
    torch.manual_seed(0)
    slopes = [torch.randn(shape) for shape in SHAPES]
    together = [nn.Parameter(torch.zeros(shape)) for shape in SHAPES]
    alone = [nn.Parameter(torch.zeros(shape)) for shape in SHAPES]
    for parameters in (together, alone):
        for parameter, slope in zip(parameters, slopes, strict=True):
            parameter.grad = slope.clone()
    Muon(together).step()
    for parameter in alone:
        Muon([parameter]).step()
    for one, other in zip(together, alone, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=0)
        assert one.norm() > 0.01


def test_what_has_no_slope_stays() -> None:
    moved, still = (nn.Parameter(torch.ones(3, 3)) for _ in range(2))
    moved.grad = torch.eye(3)
    optimizer = Muon([moved, still], lr=0.1, weight_decay=0.5)

    def closure() -> float:
        assert torch.is_grad_enabled()
        return 7.5

    assert optimizer.step(closure) == 7.5
    assert torch.equal(still, torch.ones(3, 3))
    assert not torch.equal(moved, torch.ones(3, 3))
    assert math.isclose(optimizer.param_groups[0]["lr"], 0.1)


@pytest.mark.parametrize(
    "numbers",
    [
        {"lr": -1.0},
        {"lr": math.nan},
        {"momentum": 1.0},
        {"momentum": -0.1},
        {"momentum": math.nan},
        {"weight_decay": -1.0},
        {"weight_decay": math.nan},
    ],
)
def test_numbers_out_of_bounds(numbers: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"at least 0 and momentum in \[0, 1\), got "):
        Muon([nn.Parameter(torch.ones(2, 2))], **numbers)


def test_vectors_are_for_another() -> None:
    with pytest.raises(
        ValueError, match=r"updates matrices, got parameters of the shapes \[\(3,\)\]: give them"
    ):
        Muon([nn.Parameter(torch.ones(2, 2)), nn.Parameter(torch.ones(3))])
    with pytest.raises(ValueError, match=r"got parameters of the shapes \[\(5, 3, 2\)\]: give them"):
        Muon([nn.Parameter(torch.ones(5, 3, 2))])


@pytest.mark.usefixtures("float64")
def test_a_slope_of_zero_is_a_slope(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exformer.training.muon.orthogonalize", lambda x: x)
    parameter = nn.Parameter(torch.ones(2, 2))
    optimizer = Muon([parameter], lr=0.5, momentum=0.75, weight_decay=0.2)
    for slope in (8.0, 0.0):
        parameter.grad = torch.full_like(parameter, slope)
        optimizer.step()
    # The mean is 2, then 1.5; ahead of it 3.5, then 0.75 · 1.5.
    close(parameter.detach(), torch.full((2, 2), 0.9 * (0.9 - 0.5 * 3.5) - 0.5 * 1.125))
