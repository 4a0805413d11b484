"""Write measured values as their sentences do: percentages, powers of ten, true minus signs."""

import math
import re
from typing import Any

#: A value in a sentence; how it is written, with a power of ten before it and a unit after it.
FIELD = re.compile(r"(10\^)?\{(\w+):?([^}]*)\}( million)?")
SPEC = re.compile(r"(10\^)?(.*?)( million)?")
RAISED = str.maketrans("0123456789-−", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁻")


def rounded(found: Any, *, digits: int = 4) -> Any:
    """Round all numbers with a point in nested dicts and lists, as a file of measured values keeps them.

    >>> rounded({"loss": [2.123456, 3], "text": "a dog"})
    {'loss': [2.1235, 3], 'text': 'a dog'}
    """
    if isinstance(found, dict):
        return {name: rounded(value, digits=digits) for name, value in found.items()}
    if isinstance(found, list):
        return [rounded(value, digits=digits) for value in found]
    return round(found, digits) if isinstance(found, float) else found


def value_specs(says: str) -> dict[str, str]:
    """Return how a sentence writes each of its values, with a power of ten or "million" that it adds.

    >>> value_specs("At {n} words {share:.0%}, {steps:.1f} million times 10^{far:.0f}.")
    {'n': '', 'share': '.0%', 'steps': '.1f million', 'far': '10^.0f'}
    """
    return {name: f"{power}{spec}{unit}" for power, name, spec, unit in FIELD.findall(says)}


def write_value(value: Any, spec: str) -> str:
    """Write a value as its sentence does; a dash where it is missing, four digits where nothing is said.

    Percentages apart, what is not 0 is not written as 0; ten times as much and more is no percentage.

    >>> write_value(0.97, ".0%"), write_value(0.123456, ""), write_value("nan", ".0%"), write_value(None, "")
    ('97%', '0.1235', 'nan', '–')
    >>> write_value(-0.08, ".0f"), write_value(10.0, ".1%"), write_value(-14.2, "10^.0f")
    ('−0.08', '10 times', '10⁻¹⁴')
    """
    if value is None:
        return "–"
    power, plain, unit = SPEC.fullmatch(spec).groups(default="")  # type: ignore[union-attr]
    try:
        text = format(value, plain or (".4g" if isinstance(value, float) else ""))
    except ValueError:  # "nan" is a word here; a mean of integers is none
        text = f"{value:.4g}" if isinstance(value, float) else str(value)
    if isinstance(value, float) and text.endswith("%") and 10 <= abs(value) < math.inf:
        text = f"{value:,.0f} times"
    elif isinstance(value, float) and re.fullmatch("-?[0.]+", text):
        text = f"{value:.1g}" if value and not power else text.lstrip("-")
    return typeset(f"{power}{text}{unit}")


def typeset(text: str) -> str:
    """Write minus signs and powers of ten as in print.

    >>> typeset("by 2e-06, -0.5, 1e-12, 3e+03 and 10^-14")
    'by 2·10⁻⁶, −0.5, 10⁻¹², 3,000 and 10⁻¹⁴'
    """
    text = re.sub(r"(?<![\w.])-(?=\d)", "−", text)
    text = re.sub(r"(?<![\w.])(\d(?:\.\d+)?)e([-+]\d+)(?!\w)", _write_power, text)
    return re.sub(r"10\^([-−]?\d+)", lambda m: f"10{m[1].translate(RAISED)}", text)


def _write_power(match: re.Match[str]) -> str:
    digits, power = match[1], int(match[2])
    if abs(power) <= 3:
        return f"{float(match[0]):,g}"
    return f"10^{power}" if digits == "1" else f"{digits}·10^{power}"
