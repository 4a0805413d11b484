"""A recipe: all that a training run depends on."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from exformer.training.config import TrainingConfig, check_choices, check_seed, check_whole_numbers


@dataclass(frozen=True)
class Recipe(TrainingConfig):
    """Say all that a training run depends on; the same recipe gives the same weights.

    Args:
        name: What the command knows it by.
        corpus: What is learned from, a name in :data:`~exformer.recipes.datasets.CORPORA`.
        model: Settings of the model's configuration, but for the sizes of vocabularies.
        tokenizer: "byte-pair", "character" or "word"; one for both languages of a translation.
        n_merges: Of the byte pairs.
        both_ways: Learn each pair of sentences in both directions; the source tells which one is wanted.
        teachers: Recipes whose models are trained first, on the same pairs in either direction; their
            translations of the training texts are learned too.
        teachers_seed: Of all teachers; None: the recipe's own.
        tokens: Most target tokens in a batch.
        beam: Candidates kept when translations are scored.
        alpha: How much the beam makes up for length then.

    The other settings are those of a :class:`~exformer.training.config.TrainingConfig`.
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
    beam: int = 5
    alpha: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what no run can follow."""
        for name in ("name", "corpus"):
            if not isinstance(getattr(self, name), str):
                raise ValueError(f"{name} must be a text, got {getattr(self, name)!r}")
        if not isinstance(self.model, Mapping):
            raise ValueError(f"model must be settings by their names, got {self.model!r}")
        check_choices(self, {"tokenizer": ("byte-pair", "character", "word")})
        check_whole_numbers(self, {"tokens": 1, "n_merges": 0, "beam": 1})
        super().__post_init__()
        if self.beam > 10_000 or not 0 <= self.alpha <= 10:  # so that NaN is refused too
            raise ValueError(
                f"beam must be at most 10,000 and alpha lie from 0 to 10, got {self.beam} and {self.alpha}"
            )
        if self.teachers_seed is not None:
            check_seed(self, "teachers_seed")
            if not self.teachers:
                raise ValueError(f"teachers_seed is for recipes with teachers, {self.name} learns alone")

    @property
    def seed_of_teachers(self) -> int:
        """The seed that all teachers are trained with."""
        return self.seed if self.teachers_seed is None else self.teachers_seed

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> "Recipe":
        """Read a recipe as :meth:`settings` gave it.

        Raises:
            ValueError: If they are those of no recipe.
        """
        try:
            given = dict(settings)
            given |= {"betas": tuple(given["betas"]), "teachers": tuple(given.get("teachers", ()))}
            return cls(**given)
        except (TypeError, KeyError) as error:
            raise ValueError(f"expected the settings of a recipe: {error}") from error

    def settings(self) -> dict[str, Any]:
        """Return the recipe as JSON holds it."""
        own = {"model": dict(self.model), "rates": dict(self.rates)}
        lists = {"betas": list(self.betas), "teachers": list(self.teachers)}
        return asdict(self) | own | lists
