"""Claims: what a lesson states, beside the numbers that it measured."""

import inspect
import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from html import escape
from string import Formatter
from typing import Any

from exformer_lessons.source import render

CLAIM_ID = re.compile(r"[A-Z]\d\d")
CARD_STYLE = "border-left: 4px solid #1f7a5c; padding: 0.5em 1em; margin: 0.75em 0"

#: What a claim may measure: a bool, a number or a word.
Value = bool | int | float | str


class ClaimError(Exception):
    """A claim that the numbers do not support."""


@dataclass(frozen=True)
class Finding:
    """What a claim's cell found; a notebook shows it as a card, and keeps the values beside it.

    Args:
        claim_id: The row's id.
        says: The sentence, with its figures.
        holds: Whether the figures support it.
        values: The measured values by their names.
        template: The sentence without its figures.
        budget: Whether the sentence names a budget of training.
        kind: "claim", or "shown" for what is true by definition.
    """

    claim_id: str
    says: str
    holds: bool = True
    values: dict[str, Value] = field(default_factory=dict)
    template: str = ""
    budget: bool = False
    kind: str = "claim"

    def __repr__(self) -> str:
        return f"{self.kind} {self.claim_id} | {self.says}"

    def _repr_html_(self) -> str:
        return (
            f'<div class="claim" id="claim-{self.claim_id}" style="{CARD_STYLE}">'
            f"<strong>{self.kind.capitalize()} {self.claim_id}</strong> {escape(self.says)}</div>"
        )

    def _repr_mimebundle_(self, **_: object) -> tuple[dict[str, str], dict[str, Any]]:
        kept = {"kind": self.kind, "id": self.claim_id, "says": self.template, "values": self.values}
        kept |= {"budget": True} if self.budget else {}
        data = {"text/plain": repr(self), "text/html": self._repr_html_()}
        return data, {"exformer": kept}


_kept: ContextVar[list[Finding] | None] = ContextVar("kept", default=None)


@contextmanager
def kept_findings() -> Iterator[list[Finding]]:
    """Collect what claims find, without an error where one does not hold.

    Yields:
        A list that grows with each claim.

    >>> with kept_findings() as found:
    ...     claim("A15", holds=lambda spread: spread > 30, says="The spread is {spread:.1f}.", spread=4.0)
    >>> found[0].holds, found[0].says
    (False, 'The spread is 4.0.')
    """
    found: list[Finding] = []
    token = _kept.set(found)
    try:
        yield found
    finally:
        _kept.reset(token)


def claim(
    claim_id: str, *, holds: Callable[..., object] | object, says: str, budget: bool = False, **values: object
) -> None:
    """State a row of the ledger, with the numbers that were measured.

    The values are named, the condition is a function of them, and the sentence shows them. The notebook keeps
    them beside the card, where tests, trials and the ledger read them.

    Args:
        claim_id: The row's id: a letter and two digits.
        holds: A function of some of the values, by their names: whether they support the claim.
        says: What was found, in one line; ``{name}`` stands for a value, ``{name:.0%}`` says how to write it.
        budget: Whether the sentence names a budget of training ("after one pass"): four times the steps
            then need not support it.
        values: What was measured: each a bool, a number or a word.

    Raises:
        ClaimError: If it does not hold.
        ValueError: If the id, the sentence, the condition or a value is not of the given form.

    Examples:
        >>> claim(
        ...     "A15",
        ...     holds=lambda spread: spread > 30,
        ...     says="At d_k = 1,024 the standard deviation of q·k is {spread:.1f}.",
        ...     spread=31.94,
        ... )
        claim A15 | At d_k = 1,024 the standard deviation of q·k is 31.9.
    """
    if not callable(holds):
        raise ValueError(
            f"claim {claim_id}: holds must be a function of {', '.join(values) or 'the values'}, "
            f"got {holds!r}: write holds=lambda …"
        )
    plain = _plain_values(claim_id, values)
    asked = set(inspect.signature(holds).parameters)
    sentence = _sentence(claim_id, says, plain, asked)
    finite = all(not isinstance(value, float) or math.isfinite(value) for value in plain.values())
    true = finite and bool(holds(**{name: plain[name] for name in asked}))
    _show(Finding(claim_id, sentence, true, plain, says, budget))


def shown(claim_id: str, *, says: str, **values: object) -> None:
    """Show a row of the ledger that is true by definition: there is nothing to measure that could refute it.

    Args:
        claim_id: The row's id: a letter and two digits.
        says: What is shown, in one line, as in :func:`claim`.
        values: What the sentence quotes.

    Raises:
        ValueError: If the id, the sentence or a value is not of the given form.

    Examples:
        >>> shown("B05", says="The code of position {n} is added to the word's vector.", n=3)
        shown B05 | The code of position 3 is added to the word's vector.
    """
    plain = _plain_values(claim_id, values)
    _show(Finding(claim_id, _sentence(claim_id, says, plain, set()), True, plain, says, kind="shown"))


def _show(found: Finding) -> None:
    """Collect the finding inside of :func:`kept_findings`, else show it."""
    if not CLAIM_ID.fullmatch(found.claim_id):
        raise ValueError(f"claim id ({found.claim_id!r}) must be a letter and two digits, such as 'A15'")
    keeping = _kept.get()
    if keeping is not None:
        keeping.append(found)
        return
    if not found.holds:
        exact = ", ".join(f"{name} = {value!r}" for name, value in found.values.items())
        raise ClaimError(
            f"claim {found.claim_id} does not hold: {found.says}{f' ({exact})' if exact else ''}"
        )
    render(found)


def _plain_values(claim_id: str, values: dict[str, object]) -> dict[str, Value]:
    """Return values as Python's own; a tensor or an array of one number is that number."""
    plain: dict[str, Value] = {}
    for name, value in values.items():
        try:
            one = value.item() if hasattr(value, "item") else value
        except (RuntimeError, ValueError):  # there are several
            one = value
        for kind in (bool, int, float, str):  # a float of numpy is a float
            if isinstance(one, kind):
                plain[name] = kind(one)
                break
        else:
            raise ValueError(
                f"claim {claim_id}: {name} must be a bool, a number or a word, got "
                f"{type(value).__name__}: name the one number that the claim needs"
            )
    return plain


def _sentence(claim_id: str, says: str, values: dict[str, Value], asked: set[str]) -> str:
    """Format the sentence; each value is used by it or by the condition, and none is missing."""
    if not says.strip() or "\n" in says:
        raise ValueError(f"claim {claim_id}: says ({says!r}) must be one line that is not empty")
    line = says.strip()
    try:
        fields = [name for _, name, _, _ in Formatter().parse(line) if name is not None]
        sentence = line.format_map(values) if set(fields) <= set(values) else ""
    except (TypeError, ValueError) as error:
        raise ValueError(f"claim {claim_id}: says ({says!r}) cannot be formatted: {error}") from error
    if wrong := [name for name in fields if not name.isidentifier()]:
        raise ValueError(
            f"claim {claim_id}: says must name its values, as {{share:.0%}}, got {{{wrong[0]}}}: measure it, "
            "give it a name"
        )
    quoted = set(fields)
    if missing := (quoted | asked) - set(values):
        raise ValueError(
            f"claim {claim_id}: {', '.join(sorted(map(repr, missing)))} is not among the values "
            f"({', '.join(values) or 'there are none'}): add {min(missing)}=…"
        )
    if unused := set(values) - quoted - asked:
        raise ValueError(
            f"claim {claim_id}: {', '.join(sorted(unused))} is measured, but neither the sentence nor the "
            "condition uses it: drop it"
        )
    if asked and not quoted:
        raise ValueError(f"claim {claim_id}: says ({says!r}) shows no value: write {{{min(asked)}}} into it")
    return sentence
