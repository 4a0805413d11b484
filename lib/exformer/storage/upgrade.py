"""Weights, cards and recipes of earlier versions -> today's names, so that old files keep loading."""

import re
from collections.abc import Mapping
from typing import Any, TypeVar

_Value = TypeVar("_Value")

#: What weights were called, as a pattern, and what replaces it, oldest change first.
RENAMED_WEIGHTS: tuple[tuple[str, str], ...] = (
    # Until 0.1, a normalization of queries and keys was wrapped around the positions.
    (r"\.positions\.norm_([qk])\.", r".norm_\1."),
    # Until 0.1, norms and embeddings did not call their parameter weight.
    (r"(^|[._])(norm|norm_[a-z_]+)\.gain$", r"\1\2.weight"),
    (r"(^|[._])(embedding|positions|segments)\.table$", r"\1\2.weight"),
)


_RECIPE_SETTINGS = {"beam": "num_beams", "alpha": "length_penalty"}
#: The settings of a training that were among a recipe's others until 0.1, and what they are called today.
TRAINING_SETTINGS = {
    **{
        name: name
        for name in (
            "steps", "accumulate", "optimizer", "lr", "muon_lr", "momentum", "schedule", "warmup", "betas",
            "weight_decay", "clip_norm", "label_smoothing", "precision", "seed", "patience",
        )
    },
    "rates": "lr_by_module",
    "every": "eval_interval",
    "average": "average_last",
}  # fmt: skip


def upgrade_recipe(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a recipe, as a card or a run holds them, in the form of today.

    >>> upgrade_recipe({"name": "mine", "beam": 2, "schedule": "root", "every": 10})
    {'name': 'mine', 'num_beams': 2, 'training': {'schedule': 'inverse_sqrt', 'eval_interval': 10}}
    """
    settings = {name: value for name, value in settings.items() if (name, value) != ("both_ways", False)}
    if "training" in settings:
        return settings
    own = {name: value for name, value in settings.items() if name not in TRAINING_SETTINGS}
    own = {_RECIPE_SETTINGS.get(name, name): value for name, value in own.items()}
    training = {today: settings[name] for name, today in TRAINING_SETTINGS.items() if name in settings}
    if training.get("schedule") == "root":
        training["schedule"] = "inverse_sqrt"
    return own | {"training": training}


def upgrade_weights(tensors: Mapping[str, _Value]) -> dict[str, _Value]:
    """Return the tensors of a file under the names that the modules of today have.

    >>> upgrade_weights({"layers.0.self_attention.positions.norm_q.gain": 1})
    {'layers.0.self_attention.norm_q.weight': 1}
    """
    upgraded = {}
    for name, value in tensors.items():
        for pattern, replacement in RENAMED_WEIGHTS:
            name = re.sub(pattern, replacement, name)
        upgraded[name] = value
    return upgraded
