"""Tables of measurements, as a page shows them and as text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True)
class Table:
    """A table that notebooks show as HTML and terminals as aligned text."""

    corner: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __repr__(self) -> str:
        lines = [(self.corner, *self.columns), *self.rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "   ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]) for line in lines
        )

    def _repr_html_(self) -> str:
        head = "".join(f'<th scope="col">{escape(name)}</th>' for name in (self.corner, *self.columns))
        body = "".join(
            f'<tr><th scope="row">{escape(name)}</th>'
            + "".join(f"<td>{escape(cell)}</td>" for cell in cells)
            + "</tr>"
            for name, *cells in self.rows
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def table(
    rows: Mapping[str, Sequence[object]],
    *,
    columns: Sequence[str],
    form: str | Sequence[str] = "",
    corner: str = "",
) -> Table:
    """Set measurements as a table, one row for each name.

    Args:
        rows: The cells of each row, by its name: numbers or words.
        columns: Names of the columns, without that of the rows.
        form: How numbers are written, as in ``format``: one for all columns, or one for each.
        corner: What the names of the rows are.

    Raises:
        ValueError: If there are no rows, or a row or ``form`` has not one cell for each column.

    >>> measured = {"LSTM": [0.41, 12], "attention": [0.98, 7]}
    >>> table(measured, columns=["accuracy", "seconds"], form=[".0%", "d"])
                accuracy   seconds
    LSTM             41%        12
    attention        98%         7
    """
    forms = [form] * len(columns) if isinstance(form, str) else list(form)
    if not rows:
        raise ValueError("a table needs at least one row, got none")
    if len(forms) != len(columns):
        raise ValueError(f"expected one form or {len(columns)}, one for each column, got {len(forms)}")
    for name, cells in rows.items():
        if len(cells) != len(columns):
            raise ValueError(
                f"row {name!r}: expected {len(columns)} cells, one for each column, got {len(cells)}"
            )
    written = (
        (
            name,
            *(
                cell if isinstance(cell, str) else f"{cell:{how}}"
                for cell, how in zip(cells, forms, strict=True)
            ),
        )
        for name, cells in rows.items()
    )
    return Table(corner, tuple(columns), tuple(written))
