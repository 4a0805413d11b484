"""Compare the outputs of a cell with the stored ones: exactly, but for numbers with a tolerance.

A cell's tag ``tolerance:NAME=SIZE`` sets one. The name is a value of the cell's claim, as in
``tolerance:attention=0.02``, or a kind of numbers in what the cell prints: ``percent`` (in points),
``decimals`` (with a point or an exponent) or ``integers``; or ``words``, of which so many may differ where a
text hangs on the last digit of a training, which differs between processors.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from html import escape
from itertools import zip_longest
from typing import Any

TAG = re.compile(r"tolerance:(\w+)=(\d+(?:\.\d+)?(?:e-?\d+)?)")
#: 12, 1,234.5, -0.3, −3, 1e-05; not the 2 of w2 or of 1.2.3
NUMBER = re.compile(r"(?<![\w.])[-+−]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w.]*\w)")
#: A number of another length moves the spaces beside it.
SPACED = re.compile(f" *{NUMBER.pattern} *")
TEXTS = ("text/plain", "text/html", "text/markdown")


def read_tags(tags: Iterable[str]) -> dict[str, float]:
    """Return the tolerances that a cell's tags name.

    Raises:
        ValueError: If one is not of the given form, is 0, or is there twice.

    >>> read_tags(["hide-input", "tolerance:attention=0.02"])
    {'attention': 0.02}
    """
    found: dict[str, float] = {}
    for tag in tags:
        if tag.startswith("tolerance:"):
            match = TAG.fullmatch(tag)
            if not match or float(match[2]) == 0 or match[1] in found:
                raise ValueError(f"tag {tag!r} must be tolerance:name=size, the size above 0, each name once")
            found[match[1]] = float(match[2])
    return found


def forgive(
    outputs: Sequence[Any], stored: Sequence[Any], tolerances: Mapping[str, float]
) -> tuple[list[Any], set[str]]:
    """Return new outputs with the stored text wherever it differs by no more than the tolerances.

    Args:
        outputs: What a cell puts out now.
        stored: What it put out before.
        tolerances: By their names.

    Returns:
        The outputs, to be compared exactly, and the tolerances that no number uses.
    """
    answer, used = deepcopy(list(outputs)), set()
    for new, old in zip(answer, stored, strict=False):  # another number of outputs is no longer forgiven
        known, seen = claim_of(new), claim_of(old)
        if known and seen:
            used |= tolerances.keys() & seen["values"].keys()
            _forgive_claim(new["data"], known, seen, tolerances)
            continue
        for holder, theirs in ((new, old), (new.get("data") or {}, old.get("data") or {})):
            for kind in {"text", *TEXTS} & holder.keys() & theirs.keys():
                used |= {"words", *(_kind(theirs[kind], each) for each in NUMBER.finditer(theirs[kind]))}
                if _other_words(holder[kind], theirs[kind]) <= tolerances.get("words", -1) or _same_text(
                    holder[kind], theirs[kind], tolerances
                ):
                    holder[kind] = theirs[kind]
    return answer, tolerances.keys() - used


def claim_of(output: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a claim's output keeps beside its card, or nothing."""
    return (output.get("metadata") or {}).get("exformer") or {}


def same_claim(values: Mapping[str, Any], seen: Mapping[str, Any], tolerances: Mapping[str, float]) -> bool:
    """Return whether the figures of a claim that is measured again are the same, within their tolerances."""
    values, stored = dict(values), seen["values"]
    if values.keys() != stored.keys():
        return False
    for name, value in stored.items():
        if name in tolerances and _is_near(values[name], value, tolerances[name]):
            values[name] = value
        elif name not in tolerances and isinstance(value, float) and isinstance(values[name], float):
            continue  # as the sentence writes it
        elif values[name] != value:
            return False
    return seen["says"].format(**values) == seen["says"].format(**stored)


def _forgive_claim(
    data: dict[str, str], known: Mapping[str, Any], seen: Mapping[str, Any], tolerances: Mapping[str, float]
) -> None:
    """Write the stored figures into a card if the new ones are near enough, else name all new ones."""
    now, before = (each["says"].format(**each["values"]).strip() for each in (known, seen))
    same = known["says"] == seen["says"] and same_claim(known["values"], seen, tolerances)
    after = before if same else f"{now} {known['values']}"
    for kind, write in (("text/plain", str), ("text/html", escape)):
        if kind in data:
            data[kind] = data[kind].replace(write(now), write(after))


def _is_near(a: object, b: object, size: float) -> bool:
    """Return whether two finite numbers differ by no more than a size."""
    if not isinstance(a, int | float) or not isinstance(b, int | float):
        return False
    return (
        math.isfinite(a) and math.isfinite(b) and math.isclose(a, b, rel_tol=1e-9, abs_tol=size * (1 + 1e-9))
    )


def _other_words(new: str, old: str) -> int:
    """Return how many words of two texts differ, line by line."""
    lines = zip_longest(new.splitlines(), old.splitlines(), fillvalue="")
    return sum(a != b for one, other in lines for a, b in zip_longest(one.split(), other.split()))


def _same_text(new: str, old: str, tolerances: Mapping[str, float]) -> bool:
    """Return whether two texts differ only in numbers, within their tolerances, and in spaces beside them."""
    ours, theirs = list(NUMBER.finditer(new)), list(NUMBER.finditer(old))
    if len(ours) != len(theirs):
        return False
    for a, b in zip(ours, theirs, strict=True):
        limit = tolerances.get(_kind(old, b), 0.0)
        if a[0] != b[0] and not (limit and _is_near(_number(a[0]), _number(b[0]), limit)):
            return False
    return SPACED.sub("#", new) == SPACED.sub("#", old)


def _kind(text: str, number: re.Match[str]) -> str:
    if text[number.end() :].lstrip().startswith("%"):
        return "percent"
    return "decimals" if re.search(r"[.eE]", number[0]) else "integers"


def _number(text: str) -> float:
    return float(text.replace(",", "").replace("−", "-"))
