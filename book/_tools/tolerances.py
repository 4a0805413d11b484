"""Compare outputs as numbers, within tolerances that a cell's tags name; text is compared exactly.

A tag is ``tolerance:NAME=SIZE``, and its name is one of

- a value of a claim: ``tolerance:attention=0.02`` is about the value itself, however the sentence writes it;
- a label that stands before the number in its line: ``tolerance:LSTM=0.02`` is about a row;
- ``column1``, ``column2`` …: the first, the second number of each line;
- ``percent``, ``decimals``, ``integers``: all numbers with a % sign (in points), with a point or an exponent,
  and whole ones.

The first of these that applies counts. Where none applies a number is compared as it is written, as text.
"""

import math
import re
from copy import deepcopy
from html import escape

TAG = re.compile(r"tolerance:([^=]+)=(\d+(?:\.\d+)?(?:e-?\d+)?)")
#: 12, 1,234.5, -0.3, −3, 1e-05, nan; not the 2 of w2 or of 1.2.3
NUMBER = re.compile(
    r"(?<![\w.])[-+−]?(?:(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?|(?i:nan|inf))(?![\w.]*\w)"
)
LINE_END = re.compile(r"(\n|</tr>)")
KINDS = ("percent", "decimals", "integers")


def read_tags(tags):
    """Return the tolerances that a cell's tags name.

    Raises:
        ValueError: If one is not of the given form, is 0, or is there twice.
    """
    found = {}
    for tag in tags:
        if not tag.startswith("tolerance:"):
            continue
        match = TAG.fullmatch(tag)
        if not match or float(match[2]) == 0 or match[1] in found:
            raise ValueError(f"tag {tag!r} must be tolerance:name=size, the size above 0, each name once")
        found[match[1]] = float(match[2])
    return found


def forgive(outputs, stored, tolerances):
    """Return new outputs with the stored numbers wherever the new ones are near enough to them.

    Args:
        outputs: What a cell puts out now.
        stored: What it put out before.
        tolerances: By their names.

    Returns:
        The outputs, to be compared exactly, and the names of tolerances that no number asked for.
    """
    outputs, unused = deepcopy(outputs), set(tolerances)
    for new, old in zip(outputs, stored, strict=False):  # another number of outputs is no longer forgiven
        known, seen = claim_of(new), claim_of(old)
        rest = tolerances
        if known and seen:
            _forgive_claim(new, known, seen, tolerances, unused)
            rest = {name: size for name, size in tolerances.items() if name not in seen["values"]}
        for holder, name, text, wanted in _texts(new, old):
            holder[name] = _forgive_text(text, wanted, rest, unused)
    return outputs, unused


def claim_of(output):
    """Return what a claim's output keeps beside its card, or nothing."""
    return (output.get("metadata") or {}).get("exformer") or {}


def _texts(new, old):
    """Yield each text that two outputs share, with the place where the new one stands."""
    if "text" in new and "text" in old:
        yield new, "text", new["text"], old["text"]
    ours, theirs = new.get("data") or {}, old.get("data") or {}
    for kind in ("text/plain", "text/html", "text/markdown"):
        if kind in ours and kind in theirs:
            yield ours, kind, ours[kind], theirs[kind]


def same_claim(known, seen, tolerances):
    """Say whether a claim that is measured again has the same sentence, within its tolerances."""
    values, wrong = _settle(known, seen, tolerances, set())
    return not wrong and seen["says"].format(**values) == seen["says"].format(**seen["values"])


def _settle(known, seen, tolerances, unused):
    """Return a claim's values, the stored ones where the new ones are near enough, and what is wrong."""
    values, wrong = dict(known["values"]), []
    for name, value in seen["values"].items():
        mine = values.get(name)
        if name in tolerances and _is_number(value):
            unused.discard(name)
            if _is_number(mine) and abs(mine - value) <= tolerances[name] * (1 + 1e-9):
                values[name] = value
                continue
        elif isinstance(value, float) and isinstance(mine, float):
            continue  # as it is written
        if mine != value:
            wrong.append(f"{name} is {mine}, stored is {value}")
    return values, wrong


def _forgive_claim(new, known, seen, tolerances, unused):
    """Write a claim's sentence with the stored values where the new ones are near enough."""
    values, wrong = _settle(known, seen, tolerances, unused)
    before, after = (known["says"].format(**each) for each in (known["values"], values))
    after += f" [{'; '.join(wrong)}]" if wrong else ""
    for kind, write in (("text/plain", str), ("text/html", escape)):
        if kind in new.get("data", {}):
            new["data"][kind] = new["data"][kind].replace(write(before.strip()), write(after.strip()))


def _is_number(value):
    return isinstance(value, int | float) and not isinstance(value, bool)


def _forgive_text(new, old, tolerances, unused):
    """Return the new text with the stored lines wherever they differ by no more than the tolerances."""
    ours, theirs = LINE_END.split(new), LINE_END.split(old)
    lines = []
    for number, line in enumerate(theirs):
        mine = ours[number] if number < len(ours) else None
        lines.append(_forgive_line(mine, line, tolerances, unused))
    if len(ours) != len(theirs):
        return new
    return "".join(lines)


def _forgive_line(new, old, tolerances, unused):
    """Return the stored line if the new one is near enough, else the new one."""
    theirs = list(NUMBER.finditer(old))
    limits = [_limit(old, match, place, tolerances) for place, match in enumerate(theirs, start=1)]
    unused -= {name for name, _ in limits}
    if new is None or new == old:
        return new
    ours = list(NUMBER.finditer(new))
    if len(ours) != len(theirs):
        return new
    near = [_near(a[0], b[0], limit) for a, b, (_, limit) in zip(ours, theirs, limits, strict=True)]
    # A number of another length moves the spaces around it.
    moved = [len(a[0]) != len(b[0]) for a, b in zip(ours, theirs, strict=True)]
    same = _between(new, ours, moved) == _between(old, theirs, moved)
    return old if same and all(near) else new


def _limit(line, match, place, tolerances):
    """Return the name and the size of the tolerance that applies to a number; an empty name and 0 if none."""
    before = line[: match.start()]
    for name, size in tolerances.items():
        if not (name in KINDS or re.fullmatch(r"column\d+", name)) and re.search(
            rf"(?<!\w){re.escape(name)}(?!\w)", before
        ):
            return name, size
    if f"column{place}" in tolerances:
        return f"column{place}", tolerances[f"column{place}"]
    percent = line[match.end() :].lstrip().startswith("%")
    kind = "percent" if percent else "decimals" if re.search(r"[.e]|nan|inf", match[0], re.I) else "integers"
    return (kind, tolerances[kind]) if kind in tolerances else ("", 0.0)


def _near(a, b, limit):
    """Say whether two numbers are the same as text, or near enough; what is no number is near nothing."""
    if a == b:
        return True
    x, y = (float(text.replace(",", "").replace("−", "-")) for text in (a, b))
    return math.isfinite(x) and math.isfinite(y) and limit > 0 and abs(x - y) <= limit * (1 + 1e-9)


def _between(line, numbers, moved):
    """Return the text between the numbers; beside one that moved, any number of spaces is one."""
    parts, at = [], 0
    for number, match in enumerate(numbers):
        part = line[at : match.start()]
        if moved[number]:
            part = re.sub(r" +$", " ", part)
        if number and moved[number - 1]:
            part = re.sub(r"^ +", " ", part)
        parts.append(part)
        at = match.end()
    rest = line[at:]
    return [*parts, re.sub(r"^ +", " ", rest) if moved and moved[-1] else rest]
