"""Our own captions: whole, different from one another, and none of Multi30k's."""

import os
from pathlib import Path

import pytest

from exformer.corpora.captions import captions
from exformer.corpora.real import multi30k


def test_number_of_captions() -> None:
    pairs = captions()
    assert len(pairs) == len({pair.source for pair in pairs}) == len({pair.target for pair in pairs}) == 40
    for pair in pairs:
        for text in (pair.source, pair.target):
            assert text == text.strip()
            assert text[0].isupper()
            assert text.endswith(".")


def test_captions_are_not_in_multi30k() -> None:
    if not (Path(os.environ.get("EXFORMER_DATA", "nowhere")) / "multi30k").is_dir():
        pytest.skip("no Multi30k: EXFORMER_DATA names no folder that has it")
    theirs = [pair for part in ("train", "val", "test") for pair in multi30k(part, src="en", tgt="de")]
    for side in ("source", "target"):
        known = {getattr(pair, side).strip().casefold() for pair in theirs}
        assert not [pair for pair in captions() if getattr(pair, side).casefold() in known]
