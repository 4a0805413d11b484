"""How a model is trained: the settings of a :class:`~exformer.training.trainer.Trainer`. No torch here."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from exformer.checks import whole_number
from exformer.training.schedules import Schedule, cosine_schedule, linear_schedule, root_schedule

_CHOICES = {
    "optimizer": ("adamw", "muon"),
    "schedule": ("root", "linear", "cosine"),
    "precision": ("no", "bf16"),
}
#: The least of each whole number.
_LEAST = dict.fromkeys(("steps", "accumulate", "warmup", "every", "average"), 1) | {"patience": 0}


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """Settings of a training run.

    Args:
        steps: Largest number of optimizer steps.
        accumulate: Number of micro-batches in which a process handles its share of a batch, to save memory.
        optimizer: "adamw" for all parameters, or "muon" for the layers' matrices and AdamW for the rest.
        lr: Peak learning rate of AdamW.
        rates: Different peak rates for parts of the model, by name, such as "embedding".
        muon_lr: Peak learning rate of Muon.
        momentum: Momentum of Muon.
        schedule: How the rate falls after the warm-up: "root", "linear" (to 0) or "cosine" (to a tenth).
        warmup: Number of steps in which the rate rises to its peak.
        betas: Decay rates of AdamW's running means.
        weight_decay: Weight decay of both optimizers.
        clip_norm: Largest norm of the gradient, all parameters as one vector; None for no limit.
        label_smoothing: Share of the target probability that is spread over the vocabulary; 0 in validation.
        precision: "no" for float32, "bf16" for bfloat16 where it is precise enough.
        seed: Seed of dropout; the data have a seed of their own.
        every: Steps between two validations, each with a checkpoint.
        average: Number of checkpoints to keep; the final model of a recipe is their mean.
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
    rates: Mapping[str, float] = field(default_factory=dict)
    muon_lr: float = 0.02
    momentum: float = 0.95
    schedule: str = "root"
    warmup: int = 100
    betas: tuple[float, float] = (0.9, 0.98)
    weight_decay: float = 0.0
    clip_norm: float | None = 1.0
    label_smoothing: float = 0.0
    precision: str = "no"
    seed: int = 0
    every: int = 100
    average: int = 1
    patience: int = 0

    def __post_init__(self) -> None:
        """Refuse what no run can follow."""
        check_choices(self, _CHOICES)
        check_whole_numbers(self, _LEAST)
        check_seed(self, "seed")
        if not isinstance(self.rates, Mapping):
            raise ValueError(f"rates must be numbers by the names of parts, got {self.rates!r}")
        rates = {name: getattr(self, name) for name in ("lr", "muon_lr", "weight_decay")}
        for name, rate in (
            rates | {f"the rate of {part}": rate for part, rate in self.rates.items()}
        ).items():
            if not 0 <= rate < math.inf:
                raise ValueError(f"{name} must be a number of at least 0, got {rate}")
        for name in ("momentum", "label_smoothing"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} must lie in [0, 1), got {getattr(self, name)}")
        if len(self.betas) != 2 or not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"betas must be two numbers in [0, 1), got {self.betas}")
        if self.clip_norm is not None and not 0 < self.clip_norm < math.inf:
            raise ValueError(f"clip_norm must be above 0, got {self.clip_norm}: None sets no limit")
        if self.schedule != "root" and self.warmup >= self.steps:
            raise ValueError(
                f"warmup ({self.warmup}) must be below steps ({self.steps}) for a {self.schedule} schedule"
            )

    def rate(self, peak: float) -> Schedule:
        """Return the schedule of an optimizer whose highest learning rate is given."""
        fall: Mapping[str, Callable[..., float]] = {
            "root": root_schedule,
            "linear": partial(linear_schedule, total=self.steps),
            "cosine": partial(cosine_schedule, total=self.steps),
        }
        return partial(fall[self.schedule], peak=peak, warmup=self.warmup)

    def measured_steps(self) -> list[int]:
        """Return the steps after which the model is measured and saved: each ``every``, and the last."""
        return sorted({*range(self.every, self.steps + 1, self.every), self.steps})


def check_choices(config: object, choices: Mapping[str, tuple[str, ...]]) -> None:
    """Refuse a setting that is none of its choices."""
    for name, known in choices.items():
        if getattr(config, name) not in known:
            raise ValueError(f"{name} must be one of {', '.join(known)}, got {getattr(config, name)!r}")


def check_whole_numbers(config: object, least: Mapping[str, int]) -> None:
    """Refuse a setting that is no whole number, or too small; those that NumPy made become Python's."""
    for name, low in least.items():
        object.__setattr__(config, name, whole_number(name, getattr(config, name), least=low))


def check_seed(config: object, name: str) -> None:
    """Refuse a setting that NumPy does not take for a seed; one that NumPy made becomes Python's."""
    object.__setattr__(config, name, whole_number(name, getattr(config, name), least=0, most=2**32 - 1))
