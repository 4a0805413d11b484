"""What the pages keep on one line, and which columns of a table read from the left."""

from types import SimpleNamespace

import pytest
from book_page import keep_lines

FORMULA = r'<span class="math notranslate nohighlight">\({}\)</span>'


def kept(body):
    """Return what the extension makes of a page's body."""
    context = {"body": body}
    keep_lines(SimpleNamespace(builder=SimpleNamespace(format="html")), "page", "page.html", context, None)
    return context["body"]


def test_a_formula_keeps_its_comma() -> None:
    c, x, y = map(FORMULA.format, "cxy")
    found = kept(f"<p>a state {c}, which (see {x}) and {y} too</p>")
    assert f'<span class="kept">{c},</span> which' in found
    assert f'see <span class="kept">{x})</span> and {y} too' in found


def test_a_title_keeps_its_short_words() -> None:
    found = kept("<h1>A soft look-up<a>#</a></h1>")
    assert found == '<h1>A soft <span class="kept">look-up</span><a>#</a></h1>'
    assert "kept" not in kept("<p>a soft look-up</p><h1>sequence-to-sequence</h1>")


@pytest.mark.parametrize("cell", ["2e-01", "(88–92%)", "ROUGE-L"])
def test_a_range_is_not_broken(cell: str) -> None:
    table = f"<table><tr><th>name</th><td>90% {cell}</td><td>fine-tuned</td></tr></table>"
    assert f'90% <span class="kept">{cell}</span>' in kept(table)
    assert kept(table).count("kept") == 1
    other = table.replace("<table>", '<table class="modules">')
    assert kept(other) == other


def test_a_column_of_sentences_reads_from_the_left() -> None:
    head = "<table><thead><tr><th>words</th><th>English</th><th>share</th></tr></thead><tbody>"
    rows = "".join(f"<tr><th>{n}</th><td>a tired fox slept</td><td>{n}0%</td></tr>" for n in (3, 4))
    found = kept(f"{head}{rows}</tbody></table>")
    assert found.count('class="words"') == 3
    assert '<th class="words">English</th>' in found
    uneven = f"{head}<tr><td>a tired fox slept</td></tr></tbody></table>"
    assert kept(uneven) == uneven


@pytest.mark.parametrize(
    ("cells", "from_the_left"), [(["ln 5", "a"], 0), (["1 of it", "a tired fox", "it slept"], 4)]
)
def test_a_number_in_a_sentence_moves_no_column(cells: list[str], from_the_left: int) -> None:
    for column, expected in ((cells, from_the_left), (["1 of 2", "a tired fox", "3 of 4"], 0)):
        rows = "".join(f"<tr><th>x</th><td>{cell}</td></tr>" for cell in column)
        assert kept(f"<table><tr><th>x</th><th>y</th></tr>{rows}</table>").count("words") == expected
