"""Lessons are plain Markdown, which reads right everywhere; the book makes boxes and links of it."""

import json
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("**/*.ipynb"))
DETAILS = re.compile(r"<details>\n<summary>[^<]+</summary>\n?|</details>\n?")
#: What other dialects of Markdown know and CommonMark shows as it stands.
DIALECT = {
    "a role": re.compile(r"\{[\w:+-]+\}$"),
    "a target": re.compile(r"^\([\w-]+\)=", flags=re.M),
    "a block of colons": re.compile(r"^:{3,}", flags=re.M),
    "attributes": re.compile(r"\{[#.][\w-]"),
    "a substitution": re.compile(r"\{\{"),
    "a footnote": re.compile(r"\[\^"),
    "a definition list": re.compile(r"\n: "),
    "a block break": re.compile(r"^\+\+\+", flags=re.M),
    "a comment": re.compile(r"^% ", flags=re.M),
}
#: Formulas stand in tokens of their own, so that their braces are not read as text.
PARSER = MarkdownIt("commonmark").enable("table").use(dollarmath_plugin, allow_labels=True)


def not_plain(text, folder=ROOT / "notebooks"):
    """Return what a cell holds beyond CommonMark, tables, formulas and folded parts, and dead links."""
    found, depth = [], 0
    for token in PARSER.parse(text):
        if token.type == "html_block":
            depth += {"<details": 1, "</detail": -1}.get(token.content[:8], 0)
            if not DETAILS.fullmatch(token.content):
                found.append(f"HTML: {token.content}")
        elif token.type == "fence" and not re.fullmatch(r"\w*", token.info):
            found.append(f"a directive: {token.info}")
        elif token.type == "math_block_label":
            found.append(f"a label of a formula: {token.info}")
        for inside in token.children or []:
            if inside.type == "html_inline":
                found.append(f"HTML: {inside.content}")
            elif inside.type == "link_open":
                found += dead(inside.attrs["href"], folder)
        if token.type == "inline":
            flow = "".join(_plain_text(inside) for inside in token.children)
            found += [
                f"{name}: {flow}" for name, mark in DIALECT.items() if mark.search(flow) and name != "a role"
            ]
            found += [f"a role: {flow}" for part in flow.split(CODE)[:-1] if DIALECT["a role"].search(part)]
    return found + (["<details> and </details> in different cells"] if depth else [])


CODE, FORMULA = "\0", "\1"


def _plain_text(token):
    """Return text as it is read, with one character for a piece of code and one for a formula."""
    marks = {"softbreak": "\n", "hardbreak": "\n", "code_inline": CODE, "math_inline": FORMULA}
    return token.content if token.type == "text" else marks.get(token.type, "")


def dead(address, folder):
    """Return a complaint about an address that is not on the web, in this notebook or a file of the book."""
    parts = urlsplit(address)
    if parts.scheme in ("http", "https") or not parts.path:
        return []
    path = (folder / unquote(parts.path)).resolve()
    if path.suffix not in (".ipynb", ".md", ".py") or not path.is_file():
        return [f"a link that leads nowhere outside the book: {address}"]
    return []


def markdown(path):
    """Return the Markdown cells of a notebook and the captions of its figures."""
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "markdown":
            yield "".join(cell["source"])
        yield cell["metadata"].get("mystnb", {}).get("figure", {}).get("caption", "")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_plain_markdown(path: Path) -> None:
    found = [fault for text in markdown(path) for fault in not_plain(text, path.parent)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "text",
    [
        "> **Predict.** $x^{2}$ or `{role}`?\n>\n> - one\n> - [two](https://example.org/{x})",
        "<details>\n<summary>Solution</summary>\n\n```python\nf'{x}'\n```\n\n</details>\n\nA word.",
        "| a | b |\n|---|---|\n| 1 | 2 |",
        "$$\nx_{i}\n\\tag{3.1}\n$$\n\nas [(3.1)](#eq-3.1) in [lesson 1](01_recurrence.ipynb) says of `x` {y}",
        "[softmax](../book/glossary.md#softmax), [`f()`](../lib/exformer/nn/masks.py)\\\nnext line",
        "```\nplain {term}`text`\n```",
    ],
)
def test_plain_markdown_passes(text: str) -> None:
    assert not_plain(text) == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (":::{admonition} Predict\nWhat?\n:::", "a block of colons"),
        ("> A quotation.\n\n```{note}\nHere.\n```", "a directive"),
        ("````{solution} ex-1\n:label: sol-1\n````", "a directive"),
        ("the {term}`softmax` of", "a role"),
        ("**{eq}`one`**", "a role"),
        ("> as {cite:t}`vaswani2017` has it", "a role"),
        ("| a |\n|---|\n| {term}`key` |", "a role"),
        ("(a-target)=\n## Heading", "a target"),
        ("$$\nx\n$$ (eq-one)", "a label"),
        ("a <b>word</b>", "HTML"),
        ("<div>\n\nblock\n\n</div>", "HTML"),
        ("<details open>\n<summary>Solution</summary>\n\nx\n\n</details>", "HTML"),
        ("<details>\n<summary>Solution</summary>\n\nx", "different cells"),
        ("[lesson 4](04_multi_head_attention)", "leads nowhere"),
        ("[lesson 4](04_many_heads.ipynb)", "leads nowhere"),
        ("[words](../book/words.md#softmax)", "leads nowhere"),
        ("a word[^1] with a note", "a footnote"),
        ("Term\n: meaning", "a definition list"),
        ("{{ name }}", "a substitution"),
        ("[span]{.class}", "attributes"),
        ("% a comment", "a comment"),
        ("+++\nText", "a block break"),
    ],
)
def test_other_dialects_are_found(text: str, fault: str) -> None:
    found = not_plain(text)
    assert found
    assert all(fault in words for words in found), found


# ---- what the build makes of it -------------------------------------------------------------------------

CONF = """\
extensions = ["myst_nb", "sphinxcontrib.bibtex", "sphinx.ext.autodoc", "plain_boxes", "plain_links"]
myst_enable_extensions = ["dollarmath"]
nb_execution_mode = "off"
bibtex_bibfiles = ["book/references.bib"]
numfig = True
nitpicky = True
exclude_patterns = ["_build"]
html_theme = "basic"
"""
BOOK = {
    "index.md": "# Book\n\n```{toctree}\n:numbered: 1\n\nnotebooks/01_one\nnotebooks/02_two\n```\n\n"
    "```{toctree}\n:glob:\n\nbook/*\nnotebooks/wrong_*\n```\n",
    "book/glossary.md": "# Glossary\n\n```{glossary}\nKey-value cache\n  A store.\n```\n",
    "book/references.md": "# References\n\n```{bibliography}\n:all:\n```\n\n"
    "```{py:function} exformer.nn.masks.causal_mask\n```\n",
    "book/references.bib": "@misc{ab2020, author={Ab{\\'e}, A. and Bo, B. and Co, C.}, title={T}, "
    "year={2020}, url={https://example.org/T}}\n@misc{di2021, author={Di, D.}, title={U}, year={2021}}\n",
    "lib/exformer/nn/masks.py": "",
    "book/claims.md": "# Ledger\n",
    "book/claims.yml": "- {id: A15}\n",
}
#: What must fail the build, and with which words.
WRONG = [
    ("> **Guess.** What?", "expected one of Question, Predict"),
    ("<details>\n<summary>Solution</summary>\n\nx\n\n</details>", "without an exercise before it"),
    ("<details>\n<summary>Proof</summary>\n\nx", "details> that is not closed"),
    ("<div>x</div>", "raw HTML in a lesson"),
    ("> **Exercise 2 (Late).** Do it.", "write Exercise 1"),
    ("> **Exercise (Bare).** Do it.", "write Exercise 1"),
    ("$$\nx\n\\tag{2}\n$$", "with \\tag{2} has number 1"),
    ("[(1.7)](#eq-1.7)", "there is no equation “1.7”"),
    ("[(2.2)](02_two.ipynb#eq-2.2)", "there is no equation “2.2”"),
    ("[cache](../book/glossary.md#cache)", "there is no term “cache”"),
    ("[Di (2021)](../book/references.md#di2020)", "there is no citation “di2020”"),
    ("[Di (2021)](https://example.org/U)", "has the address https://example.org/U"),
    ("[Di (2021)](https://example.org/T)", "cites a source by Abé, 2020"),
    ("[Abé et al. (2021)](https://example.org/T)", "cites a source by Abé, 2020"),
    ("[B09](../book/claims.md#B09)", "there is no claim “B09”"),
    ("[above](#A-Part)", "there is no section “A-Part”"),
    ("[there](02_two.ipynb#A-part)", "there is no section “A-part” in notebooks/02_two"),
    ("[there](03_three.ipynb)", "target not found: '03_three.ipynb'"),
    ("[`mask()`](../lib/exformer/nn/masks.py)", "target not found: exformer.nn.masks.mask"),
]
SECOND = "## The other part\n\n$$\ny\n\\tag{2.1}\n$$"


@pytest.fixture(scope="module")
def small_book(tmp_path_factory):
    """Build a book of two lessons and, without numbers, one for each fault; return pages and warnings."""
    from io import StringIO

    import nbformat
    from sphinx.application import Sphinx
    from sphinx.util.docutils import docutils_namespace

    folder = tmp_path_factory.mktemp("plain")
    for name, text in BOOK.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "notebooks").mkdir()
    wrong = {f"wrong_{number:02}": text for number, (text, _) in enumerate(WRONG)}
    for name, text in {"01_one": GOOD, "02_two": SECOND, **wrong}.items():
        cell = nbformat.v4.new_markdown_cell(f"# A lesson\n\n{text}")
        nbformat.write(nbformat.v4.new_notebook(cells=[cell]), folder / "notebooks" / f"{name}.ipynb")
    (folder / "conf.py").write_text(CONF, encoding="utf-8")
    out, warnings = folder / "_build", StringIO()
    with docutils_namespace():
        Sphinx(folder, folder, out, out / "doctrees", "html", status=None, warning=warnings).build()
    return out / "notebooks", warnings.getvalue().splitlines()


GOOD = """\
## A part

> **Predict.** What is $x$?

> **Definition (mean).** A sum, divided.

> just a **quotation.**

$$
x
\\tag{1.1}
$$

as [(1.1)](#eq-1.1) and [(2.1)](02_two.ipynb#eq-2.1) say, a [cache](../book/glossary.md#key-value-cache),
after [Abé et al. (2020)](https://example.org/T), ([Di, 2021](../book/references.md#di2021)),
[their text](https://example.org/T), [elsewhere](https://example.org/V), [above](#A-part),
[there](02_two.ipynb#The-other-part), [lesson 2](02_two.ipynb),
[`causal_mask()`](../lib/exformer/nn/masks.py), [A15](../book/claims.md#A15).

> **Exercise 1.1 (The `first`).** Do it.

<details>
<summary>Solution</summary>

Done.

```python
done
```

</details>

<details>
<summary>Proof</summary>

Clear.

<details>
<summary>Lemma</summary>

Too.

</details>

Done.

</details>
"""


def test_the_page_has_boxes_and_references(small_book) -> None:
    pages, warnings = small_book
    assert not [line for line in warnings if "WARNING" in line and "wrong_" not in line]
    page = (pages / "01_one.html").read_text(encoding="utf-8")
    flat = re.sub(r"\s+", " ", page)
    for wanted in (
        '<div class="predict admonition"> <p class="admonition-title">Predict</p> <p>What is <span',
        '<p class="admonition-title">Definition (mean)</p> <p>A sum, divided.</p>',
        "<p>just a <strong>quotation.</strong></p>",
        '<span class="eqno">(1.1)<a',
        '<a class="reference internal" href="#equation-01-one-1-1"><span>(1.1)</span></a>',
        '<a class="reference internal" href="02_two.html#equation-02-two-2-1"><span>(2.1)</span></a>',
        'href="../book/glossary.html#term-Key-value-cache"><span class="xref std std-term">cache</span></a>',
        '<a class="reference external" href="https://example.org/V">elsewhere</a>',
        'href="#a-part"><span class="std std-ref">above</span></a>',
        'href="02_two.html#the-other-part"><span class="std std-ref">there</span></a>',
        'href="../book/claims.html#ledger-A15"><span>A15</span></a>',
        'href="../book/references.html#exformer.nn.masks.causal_mask"',
        'id="exercise-1-1"> <p class="admonition-title">Exercise 1.1 (The <code',
        '<div class="solution dropdown admonition"> <p class="admonition-title">Solution to <a ',
        'href="#exercise-1-1">Exercise 1.1 (The <code',
        '<div class="dropdown admonition"> <p class="admonition-title">Proof</p> <p>Clear.</p> '
        '<div class="dropdown admonition"> <p class="admonition-title">Lemma</p> <p>Too.</p> </div> '
        "<p>Done.</p>",
    ):
        assert wanted in flat, wanted
    assert len(re.findall(r'href="../book/references.html#id\d+" title="A. Abé', flat)) == 2
    assert len(re.findall(r'href="../book/references.html#id\d+" title="D. Di', flat)) == 1
    assert "<details" not in flat
    assert "tag{" not in flat


@pytest.mark.parametrize("number", range(len(WRONG)), ids=[words for _, words in WRONG])
def test_what_is_wrong_fails_the_build(small_book, number: int) -> None:
    found = [line for line in small_book[1] if f"wrong_{number:02}" in line]
    assert len(found) == 1, found
    assert WRONG[number][1] in found[0]
