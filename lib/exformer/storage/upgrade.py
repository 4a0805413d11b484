"""Files of earlier versions -> today's names, so that weights and checkpoints keep loading."""

import re
from collections.abc import Mapping
from typing import TypeVar

_Value = TypeVar("_Value")

#: What weights were called, as a pattern, and what replaces it, oldest change first.
RENAMED_WEIGHTS: tuple[tuple[str, str], ...] = (
    # Until 0.1, a normalization of queries and keys was wrapped around the positions.
    (r"\.positions\.norm_([qk])\.", r".norm_\1."),
    # Until 0.1, norms and embeddings did not call their parameter weight.
    (r"(^|[._])(norm|norm_[a-z_]+)\.gain$", r"\1\2.weight"),
    (r"(^|[._])(embedding|positions|segments)\.table$", r"\1\2.weight"),
)


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
