"""Bits per character of Shakespeare: what the lesson shows is measured here again, where that is cheap."""

import os
from importlib.resources import files
from pathlib import Path

import pytest

from exformer.corpora.real import tiny_shakespeare
from exformer_lessons.language_model.shakespeare import bits, counting_bits

needs_text = pytest.mark.skipif(
    not (Path(os.environ.get("EXFORMER_DATA", "nowhere")) / "tinyshakespeare" / "input.txt").is_file(),
    reason="no Tiny Shakespeare: EXFORMER_DATA names no folder that has it",
)


def test_the_file_is_part_of_the_package() -> None:
    assert (files("exformer_lessons.language_model") / "shakespeare.json").is_file()
    assert list(bits()) == [f"{n}-gram of characters" for n in (2, 4, 6, 8)] + [
        "decoder, characters",
        "decoder, subwords",
    ]


@needs_text
def test_a_table_of_counts_has_the_bits_of_the_file() -> None:
    train, test = tiny_shakespeare()
    [two, four] = counting_bits(train, test, contexts=(1, 3))
    assert bits()["2-gram of characters"] == pytest.approx(two, abs=1e-9)
    assert bits()["4-gram of characters"] == pytest.approx(four, abs=1e-9)
