"""How many days late something was handed in, from Moodle's grading worksheet."""

import math
from collections.abc import Mapping
from datetime import datetime, time, timedelta

#: When something was handed in, and how Moodle writes it.
_MODIFIED = "Last modified (submission)"
_WRITTEN = ("%A, %d %B %Y, %I:%M %p", "%A, %d %B %Y, %H:%M", "%d %B %Y, %I:%M %p", "%d %B %Y, %H:%M")


def days_late(row: Mapping[str, str], due: object) -> int:
    """Return how many days after the due date a row of Moodle's worksheet says that something was handed in.

    Raises:
        ValueError: If the row has no such column, or a date cannot be read.

    >>> days_late({"Last modified (submission)": "Monday, 2 March 2026, 12:05 AM"}, "2026-03-01 23:59")
    1
    """
    told = row.get(_MODIFIED)
    if told is None:
        raise ValueError(
            f"expected a column {_MODIFIED}: set Moodle to English, and download the worksheet again"
        )
    if told.strip(" -") == "":
        return 0
    by = _due(due)
    for form in _WRITTEN:
        try:
            over = datetime.strptime(told, form) - by
        except ValueError:
            continue
        return max(0, math.ceil(over / timedelta(days=1)))
    raise ValueError(
        f"expected a date such as Monday, 2 March 2026, 12:05 AM under {_MODIFIED}, got {told!r}"
    )


def _due(told: object) -> datetime:
    try:
        found = datetime.fromisoformat(str(told))
    except ValueError:
        raise ValueError(f"expected a due date such as 2026-03-01 23:59, got {told!r}") from None
    return found if ":" in str(told) else datetime.combine(found, time(23, 59))
