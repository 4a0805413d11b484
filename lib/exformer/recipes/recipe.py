"""A recipe: all that a training run depends on."""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from exformer.generation.hypothesis import check_numbers
from exformer.training.schedules import Schedule, cosine_schedule, linear_schedule, root_schedule

_CHOICES = {
    "tokenizer": ("byte-pair", "character", "word"),
    "optimizer": ("adamw", "muon"),
    "schedule": ("root", "linear", "cosine"),
    "precision": ("no", "bf16"),
}
_KINDS = {"name": (str, "a text"), "corpus": (str, "a text")}
_KINDS |= dict.fromkeys(("model", "rates"), (Mapping, "settings by their names"))
_KINDS |= dict.fromkeys(("seed", "teachers_seed", "beam"), (int | None, "a whole number"))
#: The least of each whole number.
_LEAST = dict.fromkeys(("tokens", "accumulate", "steps", "warmup", "every", "average"), 1)
_LEAST |= {"n_merges": 0, "patience": 0}


@dataclass(frozen=True)
class Recipe:
    """Say all that a training run depends on; the same recipe gives the same weights.

    Args:
        name: As it is asked for.
        corpus: What is learned from, a name in :data:`~exformer.recipes.datasets.CORPORA`.
        model: Settings of the model's configuration, but for the sizes of vocabularies.
        tokenizer: "byte-pair", "character" or "word"; one for both languages of a translation.
        n_merges: Of the byte pairs.
        both_ways: Learn each pair of sentences in both directions; which one is asked for, the source tells.
        teachers: Recipes whose models are trained first, on the same pairs in either direction; their
            translations of the training texts are learned too.
        teachers_seed: Of all teachers; None: the recipe's own.
        tokens: Most target symbols in a batch.
        accumulate: In how many parts a process works on its share of a batch, to save memory.
        steps: Most steps of the optimizer.
        optimizer: "adamw" for all, or "muon" for the matrices of the layers and AdamW for the rest.
        lr: Peak of AdamW's learning rate.
        rates: Other peaks for some parts of the model, by their names, as "embedding".
        muon_lr: Peak of Muon's.
        momentum: How long Muon's mean of the slopes remembers.
        schedule: How the rate falls after the warm-up: "root", "linear" (to 0) or "cosine" (to a tenth).
        warmup: How many steps the rate climbs.
        betas: Of AdamW.
        weight_decay: Of both optimizers.
        clip_norm: Longest gradient; None for no limit.
        label_smoothing: Share of the target that is spread over the vocabulary.
        precision: "no" for float32, "bf16" for bfloat16 where it is precise enough.
        seed: Of all that is left to chance.
        every: Steps between two checkpoints; each is measured on the validation set.
        average: How many of the last checkpoints the final model is the mean of.
        patience: After how many checkpoints without a better one a run ends early; 0: never.
        beam: Candidates kept when translations are scored.
        alpha: How much the beam makes up for length then.
    """

    name: str
    corpus: str
    model: Mapping[str, Any] = field(default_factory=dict)
    tokenizer: str = "byte-pair"
    n_merges: int = 0
    both_ways: bool = False
    teachers: tuple[str, ...] = ()
    teachers_seed: int | None = None
    tokens: int = 4096
    accumulate: int = 1
    steps: int = 1000
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
    beam: int = 5
    alpha: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what no run can follow."""
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} must be one of {', '.join(choices)}, came {getattr(self, name)!r}")
        for name, (kind, what) in _KINDS.items():
            if not isinstance(getattr(self, name), kind):
                raise ValueError(f"{name} must be {what}, came {getattr(self, name)!r}")
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if not isinstance(value, int) or value < least:
                raise ValueError(f"{name} must be a whole number of at least {least}, came {value!r}")
        check_numbers(beam=self.beam, alpha=self.alpha)
        self._check_rates()
        for name, seed in (("seed", self.seed), ("teachers_seed", self.teachers_seed or 0)):
            if not 0 <= seed < 2**32:
                raise ValueError(f"{name} must lie from 0 to {2**32 - 1}, came {seed}")
        if self.teachers_seed is not None and not self.teachers:
            raise ValueError(f"teachers_seed is for recipes with teachers, {self.name} learns alone")

    def _check_rates(self) -> None:
        """Refuse numbers with which the optimizers take no steps, or wild ones."""
        rates = {name: getattr(self, name) for name in ("lr", "muon_lr", "weight_decay")}
        for name, value in (
            rates | {f"the rate of {part}": rate for part, rate in self.rates.items()}
        ).items():
            if not 0 <= value < math.inf:
                raise ValueError(f"{name} must be a number of at least 0, came {value}")
        for name in ("momentum", "label_smoothing"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} must lie in [0, 1), came {getattr(self, name)}")
        if len(self.betas) != 2 or not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"betas must be two numbers in [0, 1), came {self.betas}")
        if self.clip_norm is not None and not 0 < self.clip_norm < math.inf:
            raise ValueError(f"clip_norm must be above 0, came {self.clip_norm}: None sets no limit")
        if self.schedule != "root" and self.warmup >= self.steps:
            raise ValueError(
                f"warmup ({self.warmup}) must be below steps ({self.steps}) for a {self.schedule} schedule"
            )

    @property
    def seed_of_teachers(self) -> int:
        """The seed that all teachers are trained with."""
        return self.seed if self.teachers_seed is None else self.teachers_seed

    def rate(self, peak: float) -> Schedule:
        """Return the schedule of an optimizer.

        Args:
            peak: Its highest learning rate.
        """
        fall: Mapping[str, Callable[..., float]] = {
            "root": root_schedule,
            "linear": partial(linear_schedule, total=self.steps),
            "cosine": partial(cosine_schedule, total=self.steps),
        }
        return partial(fall[self.schedule], peak=peak, warmup=self.warmup)

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> "Recipe":
        """Read a recipe as :meth:`settings` gave it.

        Args:
            settings: From JSON.

        Raises:
            ValueError: If they are those of no recipe.
        """
        try:
            lists = {"betas": tuple(settings["betas"]), "teachers": tuple(settings.get("teachers", ()))}
            return cls(**{**settings, **lists})
        except (TypeError, KeyError) as error:
            raise ValueError(f"expected the settings of a recipe: {error}") from error

    def settings(self) -> dict[str, Any]:
        """Return the recipe as JSON holds it."""
        own = {"model": dict(self.model), "rates": dict(self.rates)}
        lists = {"betas": list(self.betas), "teachers": list(self.teachers)}
        return asdict(self) | own | lists
