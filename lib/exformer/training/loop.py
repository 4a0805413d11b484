"""The training loop: gradients, steps of the optimizers, and losses that are not finite."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from copy import copy
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from tqdm import tqdm

from exformer.models.check_inputs import defer_checks, raise_failed
from exformer.models.unwrap import unwrap
from exformer.training.config import check_clip_norm
from exformer.training.gradient_clipping import clip_gradients
from exformer.training.schedules import Schedule
from exformer.training.seed import set_seed as set_seed  # where it was: callers import it from here, too

#: Gives the loss of a model on a batch; some take ``label_smoothing`` too.
LossFn = Callable[..., Float[Tensor, ""]]


def default_loss(model: nn.Module) -> LossFn:
    """Return the loss that a model brings along: its method ``loss(batch)``.

    Raises:
        ValueError: If it has none.

    >>> from exformer import DecoderLM, DecoderLMConfig
    >>> model = DecoderLM(DecoderLMConfig(11)).eval()
    >>> loss_fn, ids = default_loss(model), torch.tensor([[3, 1, 4]])
    >>> loss_fn(model, ids).item() == model.loss(ids).item()
    True
    """
    if not hasattr(unwrap(model), "loss"):
        raise ValueError(
            f"{type(model).__name__} has no method loss(batch): write one, or give a loss_fn(model, batch)"
        )
    return _own_loss


def _own_loss(model: nn.Module, batch: Any, **options: Any) -> Tensor:
    inner: Any = unwrap(model)
    if inner is not model:  # the loss is that of the model inside, the forward pass that of the wrapper
        inner = copy(inner)
        inner.forward = model.__call__
    return inner.loss(batch, **options)


class DivergenceError(ValueError):
    """A training whose loss or parameters became NaN or infinite."""


class Losses:
    """Collect the loss of each step, and read the numbers from a GPU only every few steps.

    To read a number means to wait until the device has computed it, and while Python waits it gives the
    device nothing to do. A CPU has no such queue, so there each loss is read at once.

    Args:
        first_step: Number of the step whose loss comes first.
        read_every: Most losses that wait on a device to be read.

    Attributes:
        values: The losses that were read.
        checks: Checks of the batches that wait on the device too, see
            :func:`~exformer.models.check_inputs.defer_checks`.

    >>> losses = Losses()
    >>> losses.append(torch.tensor(0.5))
    >>> losses.values
    [0.5]
    """

    def __init__(self, *, first_step: int = 1, read_every: int = 16) -> None:
        self.values: list[float] = []
        self._first_step, self._read_every = first_step, read_every
        self._unread: list[Tensor] = []
        self.checks: list[tuple[Tensor, str]] = []

    def append(self, loss: Float[Tensor, ""]) -> None:
        """Add the loss of the next step.

        Raises:
            ValueError: As :meth:`read`.
        """
        self._unread.append(loss.detach())
        if loss.device.type == "cpu" or len(self._unread) == self._read_every:
            self.read()

    @property
    def all_read(self) -> bool:
        """Whether ``values`` holds the losses of all steps."""
        return not self._unread

    def read(self) -> None:
        """Read all losses that wait on the device.

        Raises:
            DivergenceError: If one is NaN or infinite; the message names the first such step.
            ValueError: If a batch failed a check.
        """
        raise_failed(self.checks)
        if not self._unread:
            return
        new, self._unread = torch.stack(self._unread).tolist(), []
        for loss in new:
            if not math.isfinite(loss):
                step = self._first_step + len(self.values)
                raise DivergenceError(
                    f"the loss is {loss} at step {step}: lower the learning rate or clip gradients"
                )
            self.values.append(loss)


def train(
    model: nn.Module,
    batches: Iterable[Any],
    *,
    loss_fn: LossFn,
    optimizer: torch.optim.Optimizer,
    schedule: Schedule | None = None,
    clip_norm: float | None = None,
    progress: str = "",
) -> list[float]:
    """Take one optimizer step per batch.

    Args:
        model: Set to training mode.
        batches: One per step, in the form that ``loss_fn`` takes.
        loss_fn: Computes the loss of the model on a batch.
        optimizer: An optimizer of the model's parameters, or of some of them.
        schedule: Learning rate of step 1, 2, ...; None leaves the optimizer's own.
        clip_norm: Largest norm of the gradient, all that the optimizer updates as one vector; None: no limit.
        progress: Title of a progress bar; if empty, there is none.

    Returns:
        The loss before each step.

    Raises:
        ValueError: If there are no batches, the optimizer has no parameter of the model, ``clip_norm`` is not
            positive, or the loss or a parameter becomes NaN or infinite (a ``DivergenceError``).

    >>> import torch
    >>> model = torch.nn.Linear(1, 1)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> batches = [torch.tensor([[1.0], [2.0]])] * 100
    >>> def squared_error(model, x):
    ...     return (model(x) - 3 * x).square().mean()
    >>> losses = train(model, batches, loss_fn=squared_error, optimizer=optimizer)
    >>> len(losses), losses[-1] < 0.1
    (100, True)
    """
    losses = Losses()
    steps = training_steps(
        model,
        batches,
        loss_fn=loss_fn,
        optimizers=[(optimizer, schedule)],
        losses=losses,
        clip_norm=clip_norm,
    )
    total = len(batches) if isinstance(batches, Sized) else None
    for _ in tqdm(steps, desc=progress, total=total, disable=not progress, leave=False):
        pass
    if not losses.values:
        raise ValueError("there were no batches to train on")
    return losses.values


def backpropagate(model: nn.Module, batch: Any, loss_fn: LossFn) -> Float[Tensor, ""]:
    """Add the gradient of the loss of a batch to that of each parameter; return the loss."""
    loss = loss_fn(model, batch)
    loss.backward()
    return loss.detach()


def training_steps(
    model: nn.Module,
    batches: Iterable[Any],
    *,
    loss_fn: LossFn,
    optimizers: Sequence[tuple[torch.optim.Optimizer, Schedule | None]],
    losses: Losses | None = None,
    clip_norm: float | None = None,
    first_step: int = 1,
    backward: Callable[[nn.Module, Any, LossFn], Tensor] = backpropagate,
) -> Iterator[int]:
    """Take a step of the optimizers per batch: :func:`train` as a generator.

    Between two steps it is safe to evaluate the model (then put it back into training mode) or to save it. A
    caller that stops early leaves the model as it was after the last step.

    Args:
        model, batches, loss_fn, clip_norm: As for :func:`train`.
        optimizers: Each with the learning rate of step 1, 2, ...; None leaves its own.
        losses: Gets the loss before each step; None: nobody wants to read them.
        first_step: Number of the first step, for the schedules.
        backward: Adds the gradients of a batch and returns its loss, as
            :func:`~exformer.training.gradient_accumulation.accumulate_gradients` does of several parts.

    Yields:
        The number of each step that was taken.

    Raises:
        ValueError: As :func:`train`, but for no batches.
    """
    check_clip_norm(clip_norm)
    check_optimizers(model, [optimizer for optimizer, _ in optimizers])
    model.train()
    # To find them takes a fourteenth of a small model's step. Nothing zeroes the gradients of the others.
    updated = _updated(optimizer for optimizer, _ in optimizers)
    parameters = [parameter for parameter in model.parameters() if id(parameter) in updated]
    losses = Losses(first_step=first_step) if losses is None else losses
    step = first_step - 1
    for step, batch in enumerate(batches, start=first_step):
        for optimizer, schedule in optimizers:
            if schedule is not None:
                for group in optimizer.param_groups:
                    group["lr"] = schedule(step)
            optimizer.zero_grad(set_to_none=True)
        with defer_checks(losses.checks):
            loss = backward(model, batch, loss_fn)
        losses.append(loss)
        if clip_norm is not None:
            clip_gradients(parameters, max_norm=clip_norm)
        for optimizer, _ in optimizers:
            optimizer.step()
        yield step
    losses.read()
    check_parameters(model, step)  # no later loss would show it


def check_optimizers(model: nn.Module, optimizers: Iterable[torch.optim.Optimizer]) -> None:
    """Check that each optimizer updates a parameter of the model, and is not that of an earlier model."""
    own = {id(parameter) for parameter in model.parameters()}
    for optimizer in optimizers:
        if not _updated([optimizer]) & own:
            raise ValueError(
                "expected an optimizer of the model's parameters, got one that updates none of them: make it "
                "from model.parameters(), after the model"
            )


def _updated(optimizers: Iterable[torch.optim.Optimizer]) -> set[int]:
    """Return the identities of the parameters that some optimizers update."""
    return {id(p) for optimizer in optimizers for group in optimizer.param_groups for p in group["params"]}


def check_parameters(model: nn.Module, step: int) -> None:
    """Check that all parameters are finite."""
    if not torch.stack([p.isfinite().all() for p in model.parameters()]).all():  # waits for the device once
        raise DivergenceError(
            f"a parameter is NaN or infinite after step {step}: lower the learning rate or clip gradients"
        )
