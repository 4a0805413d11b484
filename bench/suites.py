"""What is raced: kinds of models, each with its contenders, its batches and its sizes."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from bench import encoder_decoder, gpt
from bench.setting import PAD, Contender, make_batches

OURS = "exformer"


@dataclass(frozen=True)
class Suite:
    """A kind of model.

    Args:
        contenders: Who runs, ours first: name and what builds it from a setting.
        make_batches: Makes the batches of a setting.
        read: Gives the symbols that a batch has models read, by name.
        settings: The sizes by name.
        quick: A tiny one.
        variants: Each size is raced with each of these changes.
        pad_id: The symbol that stands where a text has ended; None if texts are equally long.
    """

    contenders: dict[str, Callable[[Any], Contender]]
    make_batches: Callable[[Any], list[Any]]
    read: Callable[[Any], dict[str, Tensor]]
    settings: dict[str, Any]
    quick: Any
    variants: tuple[dict[str, Any], ...]
    pad_id: int | None

    def races(self, setting: Any) -> list[Any]:
        """Return a size with each of the changes."""
        return [replace(setting, **changes) for changes in self.variants]

    def shapes(self, batches: list[Any]) -> list[dict[str, list[int]]]:
        """Describe the size of the batches."""
        return [{name: list(ids.shape) for name, ids in self.read(batch).items()} for batch in batches]

    def padded_share(self, batches: list[Any]) -> float:
        """Return the fraction of padding in all batches."""
        ids = torch.cat([ids.flatten() for batch in batches for ids in self.read(batch).values()])
        return 0.0 if self.pad_id is None else (ids == self.pad_id).float().mean().item()


SUITES = {
    "encoder-decoder": Suite(
        contenders=encoder_decoder.CONTENDERS,
        make_batches=make_batches,
        read=lambda batch: {"src": batch.src, "tgt": batch.tgt_in},
        settings=encoder_decoder.SETTINGS,
        quick=encoder_decoder.QUICK,
        variants=({}, {"dropout": 0.0}),
        pad_id=PAD,
    ),
    "gpt": Suite(
        contenders=gpt.CONTENDERS,
        make_batches=gpt.make_texts,
        read=lambda batch: {"text": batch.ids},
        settings=gpt.SETTINGS,
        quick=gpt.QUICK,
        variants=({}, {"precision": "bfloat16"}),
        pad_id=None,
    ),
}
#: All sizes by name, each with its kind.
SETTINGS = {
    name: (kind, setting) for kind, suite in SUITES.items() for name, setting in suite.settings.items()
}
QUICK = {f"quick-{kind}": (kind, suite.quick) for kind, suite in SUITES.items()}
