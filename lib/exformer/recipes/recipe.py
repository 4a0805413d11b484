"""A recipe: all that a training run depends on."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from exformer.check_settings import check_choices, check_integers, check_seed
from exformer.generation.limits import LARGEST_PENALTY, MOST_BEAMS
from exformer.storage.upgrade import upgrade_recipe
from exformer.training.config import TrainingConfig


@dataclass(frozen=True)
class Recipe:
    """All that a training run depends on: the same recipe gives the same weights.

    Args:
        name: What the command knows it by.
        corpus: The training data, a name in :data:`~exformer.recipes.datasets.CORPORA`.
        training: Steps, optimizer, learning rates, seed.
        model: Settings of the model's configuration, except the sizes of vocabularies.
        tokenizer: "byte-pair", "character" or "word"; one for both languages of a translation.
        n_merges: Number of byte-pair merges.
        teachers: Recipes whose models are trained first, on the same pairs in either direction; their
            translations of the training texts are learned too.
        teachers_seed: Seed of all teachers; None: the recipe's own.
        tokens: Most target tokens in a batch.
        num_beams: Number of beams when translations are scored.
        length_penalty: Length penalty of that beam search.

    Raises:
        ValueError: If a setting is out of its range.
    """

    name: str
    corpus: str
    training: TrainingConfig = field(default_factory=TrainingConfig)
    model: Mapping[str, Any] = field(default_factory=dict)
    tokenizer: str = "byte-pair"
    n_merges: int = 0
    teachers: tuple[str, ...] = ()
    teachers_seed: int | None = None
    tokens: int = 4096
    num_beams: int = 5
    length_penalty: float = 1.0

    def __post_init__(self) -> None:
        """Check all settings."""
        for name in ("name", "corpus"):
            if not isinstance(getattr(self, name), str):
                raise ValueError(f"{name} must be a text, got {getattr(self, name)!r}")
        if not isinstance(self.training, TrainingConfig):
            raise ValueError(f"training must be a TrainingConfig, got {self.training!r}")
        if not isinstance(self.model, Mapping):
            raise ValueError(f"model must be settings by their names, got {self.model!r}")
        check_choices(self, {"tokenizer": ("byte-pair", "character", "word")})
        check_integers(self, {"tokens": 1, "n_merges": 0, "num_beams": 1})
        fits = self.num_beams <= MOST_BEAMS and 0 <= self.length_penalty <= LARGEST_PENALTY
        if not fits:  # so NaN is refused too
            raise ValueError(
                f"num_beams must be at most {MOST_BEAMS:,} and length_penalty lie from 0 to "
                f"{LARGEST_PENALTY:g}, got {self.num_beams} and {self.length_penalty}"
            )
        if self.teachers_seed is not None:
            check_seed(self, "teachers_seed")
            if not self.teachers:
                raise ValueError(f"teachers_seed is for recipes with teachers, {self.name} learns alone")

    @property
    def seed_of_teachers(self) -> int:
        """The seed that all teachers are trained with."""
        return self.training.seed if self.teachers_seed is None else self.teachers_seed

    def with_training(self, **changes: Any) -> "Recipe":
        """Return the recipe with other settings of its training.

        >>> Recipe("mine", "english-italian").with_training(steps=500).training.steps
        500
        """
        return replace(self, training=replace(self.training, **changes))

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> "Recipe":
        """Read a recipe as :meth:`settings` gave it, now or in an earlier version.

        Raises:
            ValueError: If they are those of no recipe.
        """
        try:
            given = upgrade_recipe(settings)
            training = dict(given["training"])
            training["betas"] = tuple(training["betas"])
            given |= {"training": TrainingConfig(**training), "teachers": tuple(given.get("teachers", ()))}
            return cls(**given)
        except (TypeError, KeyError) as error:
            raise ValueError(f"expected the settings of a recipe: {error}") from error

    def settings(self) -> dict[str, Any]:
        """Return the recipe as JSON holds it."""
        own = asdict(self) | {"model": dict(self.model), "teachers": list(self.teachers)}
        training = {"betas": list(self.training.betas), "lr_by_module": dict(self.training.lr_by_module)}
        return own | {"training": own["training"] | training}
