"""How a model is trained: the settings of a :class:`~exformer.training.trainer.Trainer`. No torch here."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from exformer.check_settings import check_choices, check_integer, check_integers, check_seed
from exformer.training.schedules import Schedule, cosine_schedule, inverse_sqrt_schedule, linear_schedule

_SCHEDULES: Mapping[str, Callable[..., float]] = {
    "inverse_sqrt": inverse_sqrt_schedule,
    "linear": linear_schedule,
    "cosine": cosine_schedule,
}
_CHOICES = {
    "optimizer": ("adamw", "muon"),
    "schedule": tuple(_SCHEDULES),
    "precision": ("no", "bf16"),
}
#: The least of each integer.
_LEAST = dict.fromkeys(("steps", "accumulate", "warmup", "eval_interval", "average_last"), 1) | {
    "patience": 0
}
_MOST_STEPS = 10**9


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """Settings of a training run.

    Args:
        steps: Largest number of optimizer steps.
        accumulate: Number of micro-batches into which a process divides its part of a batch, to save memory.
        optimizer: "adamw" for all parameters, or "muon" for the layers' matrices and AdamW for the rest.
        lr: Peak learning rate of AdamW.
        lr_by_module: Different peak learning rates for modules of the model, by name, such as "embedding".
        muon_lr: Peak learning rate of Muon.
        momentum: Momentum of Muon.
        schedule: How the learning rate falls after the warm-up: "inverse_sqrt", "linear" (to 0) or "cosine"
            (to a tenth of the peak).
        warmup: Number of steps in which the learning rate rises to its peak.
        betas: Decay rates of AdamW's running means.
        weight_decay: Weight decay of both optimizers.
        clip_norm: Largest norm of the gradient, all parameters as one vector; None for no limit.
        label_smoothing: Fraction of the target probability that is spread over the vocabulary; 0 in
            validation.
        precision: "no" for float32, "bf16" for bfloat16 where it is precise enough.
        seed: Seed of dropout and of a ``DataLoader``; the library's batches have a seed of their own.
        eval_interval: Steps between two validations, each with a checkpoint.
        average_last: Number of checkpoints to keep; the final model of a recipe is their mean.
        patience: Validations without improvement after which a run stops early; 0: never.

    Raises:
        ValueError: If a setting is out of its range, or two exclude each other.

    >>> config = TrainingConfig(steps=1_000, lr=1e-3, warmup=100)
    >>> config.steps, config.lr
    (1000, 0.001)
    """

    steps: int = 1000
    accumulate: int = 1
    optimizer: str = "adamw"
    lr: float = 1e-3
    lr_by_module: Mapping[str, float] = field(default_factory=dict)
    muon_lr: float = 0.02
    momentum: float = 0.95
    schedule: str = "inverse_sqrt"
    warmup: int = 100
    betas: tuple[float, float] = (0.9, 0.98)
    weight_decay: float = 0.0
    clip_norm: float | None = 1.0
    label_smoothing: float = 0.0
    precision: str = "no"
    seed: int = 0
    eval_interval: int = 100
    average_last: int = 1
    patience: int = 0

    def __post_init__(self) -> None:
        """Check all settings."""
        check_choices(self, _CHOICES)
        check_integers(self, _LEAST)
        check_integer("steps", self.steps, least=1, most=_MOST_STEPS)
        check_seed(self, "seed")
        if not isinstance(self.lr_by_module, Mapping):
            raise ValueError(
                f"lr_by_module must be learning rates by names of modules, got {self.lr_by_module!r}"
            )
        numbers = {name: getattr(self, name) for name in ("lr", "muon_lr", "weight_decay")}
        numbers |= {f"lr_by_module[{name!r}]": lr for name, lr in self.lr_by_module.items()}
        for name, number in numbers.items():
            if not 0 <= number < math.inf:
                raise ValueError(f"{name} must be a number of at least 0, got {number}")
        for name in ("momentum", "label_smoothing"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} must lie in [0, 1), got {getattr(self, name)}")
        if len(self.betas) != 2 or not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"betas must be two numbers in [0, 1), got {self.betas}")
        check_clip_norm(self.clip_norm)
        if self.schedule != "inverse_sqrt" and self.warmup >= self.steps:
            raise ValueError(
                f"warmup ({self.warmup}) must be below steps ({self.steps}) for a {self.schedule} schedule"
            )
        if self.warmup > self.steps:
            raise ValueError(
                f"warmup ({self.warmup}) must be at most steps ({self.steps}), or the learning rate never "
                "reaches its peak"
            )

    def make_schedule(self, peak: float) -> Schedule:
        """Return the learning rate of each step, for a peak learning rate."""
        schedule = partial(_SCHEDULES[self.schedule], peak=peak, warmup=self.warmup)
        return schedule if self.schedule == "inverse_sqrt" else partial(schedule, total=self.steps)

    def is_measured(self, step: int) -> bool:
        """Return whether a step is followed by a validation: every ``eval_interval`` steps, and the last."""
        return step == self.steps or step % self.eval_interval == 0


def check_clip_norm(clip_norm: float | None) -> None:
    """Check the largest norm of the gradient; None sets no limit.

    Raises:
        ValueError: If it is not above 0, or infinite.
    """
    if clip_norm is not None and not 0 < clip_norm < math.inf:
        raise ValueError(f"clip_norm must be above 0, got {clip_norm}: None sets no limit")
