"""Teachers translate the training texts for a student: distillation by sequences, without a temperature."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from exformer.corpora.examples import Pair
from exformer.generation.translate import translate
from exformer.hub.pretrained import load_model
from exformer.recipes import find_recipe
from exformer.recipes.datasets import CORPORA, Pairs, Text, hash_texts
from exformer.recipes.recipe import Recipe
from exformer.recipes.run_folder import RunFolder
from exformer.storage.files import read_json, replace_file
from exformer.tokenizers.tokenizer import Tokenizer
from exformer.training.clock import Clock

_SAVE_INTERVAL = 1000  # texts


def check_teachers(recipe: Recipe) -> None:
    """Check the teachers of a recipe, before hours are spent on the first of them.

    Args:
        recipe: The recipe that names the teachers.

    Raises:
        ValueError: If one is named twice, has no recipe, or has teachers itself.
    """
    if len(set(recipe.teachers)) < len(recipe.teachers):
        raise ValueError(f"a teacher is named twice, got {', '.join(recipe.teachers)}: name each one once")
    for name in recipe.teachers:
        if find_recipe(name).teachers:
            raise ValueError(f"the teacher {name} has teachers itself: choose a recipe that learns alone")


def texts_for(teacher: Recipe, data: Pairs | Text) -> tuple[str, list[str]]:
    """Return the side of the pairs that a teacher reads, "source" or "target", and its training texts.

    Args:
        teacher: Recipe of the teacher.
        data: Data of the student.

    Raises:
        ValueError: If the teacher has learned from other texts, or there are no pairs.
    """
    theirs = CORPORA[teacher.corpus]()
    if isinstance(data, Pairs) and isinstance(theirs, Pairs):
        texts = [pair.source for pair in theirs.train]
        for side in ("source", "target"):
            if texts == [getattr(pair, side) for pair in data.train]:
                return side, texts
    raise ValueError(f"the teacher {teacher.name} must have learned from the same pairs, in any direction")


def ask_teacher(
    teacher: Recipe, folder: RunFolder, texts: Sequence[str], *, progress: str = ""
) -> dict[str, Any]:
    """Translate texts with the model of a finished run; an interrupted translation is resumed.

    Args:
        teacher: Recipe of the run, with the settings of the beam search.
        folder: Folder of the run. ``translations.json`` beside the model keeps the answer.
        texts: Texts in the language that the model reads.
        progress: Title of progress bars; if empty, there are none.

    Returns:
        Under "texts" one translation of each text, and under "time" the seconds that they took, as
        :meth:`~exformer.training.clock.Clock.read` gives them.

    Raises:
        ValueError: If the file is damaged, or holds more translations than there are texts.
    """
    path, found = folder.translations, {"texts": [], "time": {}}
    if path.exists():
        found = read_json(path, what="a file of translations")
        if not _is_answer(found, most=len(texts)):
            raise ValueError(f"{path} is damaged: expected the translations of {len(texts)} texts")
    trained, clock = load_model(folder.model), Clock(found["time"])
    for start in range(len(found["texts"]), len(texts), _SAVE_INTERVAL):
        new = translate(
            trained.model,
            trained.tokenizer,
            texts[start : start + _SAVE_INTERVAL],
            num_beams=teacher.num_beams,
            length_penalty=teacher.length_penalty,
            progress=progress,
        )
        found = {"texts": found["texts"] + new, "time": clock.read()}
        replace_file(path, json.dumps(found, ensure_ascii=False).encode())
    return found


def _is_answer(found: Mapping[str, Any], *, most: int) -> bool:
    """Return whether a file holds what :func:`ask_teacher` writes, of that many texts or fewer."""
    texts, seconds = found.get("texts"), found.get("time")
    if not isinstance(texts, list) or not isinstance(seconds, dict):
        return False
    times = (seconds.get(clock) for clock in Clock({}).read())
    return (
        len(texts) <= most
        and all(isinstance(text, str) for text in texts)
        and all(isinstance(each, int | float) and 0 <= each < math.inf for each in times)
    )


def add_answers(
    data: Pairs, answers: Mapping[str, tuple[str, Sequence[str]]], *, tokenizer: Tokenizer
) -> Pairs:
    """Add the teachers' translations to the human ones, each with the text that it translates.

    A translation that is empty, or has more than twice the tokens of the human one, is left out: a beam
    search that degenerates repeats a word again and again.

    Args:
        data: The corpus.
        answers: By teacher, the side that it read and a translation of each text there.
        tokenizer: The tokenizer that counts the tokens.

    Returns:
        The corpus with a larger training set: first its own pairs, then those of each teacher.

    Source:
        Nguyen et al. 2020, "data diversification", with one round and one teacher a direction.
    """
    train, hashes = list(data.train), dict(data.hashes)
    for name, (side, texts) in answers.items():
        other = "target" if side == "source" else "source"
        for pair, text in zip(data.train, texts, strict=True):
            most = 2 * len(tokenizer.encode(getattr(pair, other)))
            if text.strip() and len(tokenizer.encode(text)) <= most:
                train.append(Pair(**{side: getattr(pair, side), other: text}))
        hashes[f"translations by {name}"] = hash_texts(texts)
    return replace(data, train=train, hashes=hashes)
