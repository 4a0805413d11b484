"""Claims: what a lesson states, beside the numbers that it measured."""

import math
import re
from dataclasses import dataclass
from html import escape

from exformer.lessons.source import render

CLAIM_ID = re.compile(r"[A-Z]\d\d")
CARD_STYLE = "border-left: 4px solid #1f7a5c; padding: 0.5em 1em; margin: 0.75em 0"


class ClaimError(Exception):
    """A claim that the numbers do not bear out."""


@dataclass(frozen=True)
class _Card:
    """One claim that holds, as a line of text and as a card."""

    claim_id: str
    says: str

    def __repr__(self) -> str:
        return f"claim {self.claim_id} | {self.says}"

    def _repr_html_(self) -> str:
        return (
            f'<div class="claim" id="claim-{self.claim_id}" style="{CARD_STYLE}">'
            f"<strong>Claim {self.claim_id}</strong> {escape(self.says)}</div>"
        )


def claim(claim_id: str, *, holds: object, says: str) -> None:
    """State a row of the ledger, with the numbers that were measured.

    It shows one line, ``claim A15 | q·k spreads as √d_k: 32 at d_k = 1,024``, from which the book makes
    its ledger.

    Args:
        claim_id: The row's id: a letter and two digits.
        holds: Whether the measurement bears the claim out, with a margin: anything with a truth value.
        says: What was found, in one line, with the numbers.

    Raises:
        ClaimError: If it does not hold.
        ValueError: If the id or the sentence is not of the given form.

    Examples:
        >>> claim("A15", holds=31.9 > 30, says="q·k spreads as √d_k: 32 at d_k = 1,024")
        claim A15 | q·k spreads as √d_k: 32 at d_k = 1,024
    """
    if not CLAIM_ID.fullmatch(claim_id):
        raise ValueError(f"claim id ({claim_id!r}) must be a letter and two digits, such as 'A15'")
    if not says.strip() or "\n" in says:
        raise ValueError(f"claim {claim_id}: says ({says!r}) must be one line that is not empty")
    if not bool(holds):
        raise ClaimError(f"claim {claim_id} does not hold: {says}")
    render(_Card(claim_id, says.strip()))


def at_least(value: float, bound: float, spec: str = ".0%") -> str:
    """Write a measured number as a bound that it reached, else the number: after a training, the last digits
    differ between processors.

    Args:
        value: What was measured.
        bound: The least that is expected, with no more digits than are shown.
        spec: How to write either, as in ``format``: a whole percentage unless given.

    Returns:
        The bound and "or more", or the number if it is less.

    Raises:
        ValueError: If the bound, as it is written, is another number.

    >>> at_least(0.973, 0.9), at_least(0.873, 0.9), at_least(2.41, 2.0, ".1f")
    ('90% or more', '87%', '2.0 or more')
    """
    shown = _exactly(bound, spec)
    return f"{shown} or more" if value >= bound else f"{value:{spec}}"


def at_most(value: float, bound: float, spec: str = ".0%") -> str:
    """Write a measured number as a bound that it did not exceed, else the number: see ``at_least``.

    >>> at_most(0.023, 0.1), at_most(0.123, 0.1)
    ('10% or less', '12%')
    """
    shown = _exactly(bound, spec)
    return f"{shown} or less" if value <= bound else f"{value:{spec}}"


def _exactly(bound: float, spec: str) -> str:
    """Write a bound; a rounded one would say what was not measured."""
    shown = f"{bound:{spec}}"
    number = float(shown.rstrip("%").replace(",", "")) / (100 if shown.endswith("%") else 1)
    if not math.isclose(number, bound):
        raise ValueError(f"bound ({bound}) must have no more digits than are shown, got {shown!r}: round it")
    return shown
