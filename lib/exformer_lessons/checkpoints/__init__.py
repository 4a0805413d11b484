"""The small models of which a lesson has a live figure; no benchmark scores them."""

from pathlib import Path

from exformer.hub.pretrained import Pretrained, load_model
from exformer.hub.shipped import WEIGHTS

_FOLDER = Path(__file__).parent


def lesson_models() -> dict[str, Path]:
    """Return the folders of the lessons' models, by name.

    >>> list(lesson_models())
    ['two-translators-attention', 'two-translators-one-vector']
    """
    return {path.name: path for path in sorted(_FOLDER.glob("*")) if (path / WEIGHTS).exists()}


def load_lesson_model(name_or_folder: str | Path) -> Pretrained:
    """Load a model of the lessons by its name, or any that :func:`~exformer.hub.pretrained.load_model` finds.

    Raises:
        ValueError: If there is no such model.
    """
    return load_model(lesson_models().get(str(name_or_folder), name_or_folder))
