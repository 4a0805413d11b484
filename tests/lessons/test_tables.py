"""Tables of measurements: text, HTML, and what is refused."""

from html.parser import HTMLParser

import pytest

from exformer_lessons.tables import table


class Cells(HTMLParser):
    """The rows of a table in HTML, as their texts."""

    def __init__(self, text):
        super().__init__()
        self.rows = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data):
        self.rows[-1][-1] += data


def test_text_and_html_hold_the_same_cells() -> None:
    shown = table(
        {"a <b>": [0.123, "<no>"], "c": [1.0, 7]}, columns=["<col>", "n"], form=[".1%", "d"], corner="<i>"
    )
    html = Cells(shown._repr_html_()).rows
    assert html == [["<i>", "<col>", "n"], ["a <b>", "12.3%", "<no>"], ["c", "100.0%", "7"]]
    assert repr(shown).splitlines() == [
        "<i>      <col>      n",
        "a <b>    12.3%   <no>",
        "c       100.0%      7",
    ]


@pytest.mark.parametrize(
    ("rows", "form", "message"),
    [
        ({}, "", "at least one row"),
        ({"a": [1]}, "", "row 'a': expected 2 cells, one for each column, got 1"),
        ({"a": [1, 2], "b": [1, 2, 3]}, "", "row 'b': expected 2 cells, one for each column, got 3"),
        ({"a": [1, 2]}, ["d", "d", "d"], "expected one form or 2, one for each column, got 3"),
        ({"a": [1, 2]}, ["d"], "expected one form or 2, one for each column, got 1"),
    ],
)
def test_what_does_not_fit_is_refused(rows, form, message) -> None:
    with pytest.raises(ValueError, match=message):
        table(rows, columns=["x", "y"], form=form)
