"""Write the skeleton of a new lesson, which runs as it stands.

    make lesson NAME=tokens TITLE="Tokens" QUESTION="What are the symbols?"

It writes two notebooks, the lesson and its evidence, the lesson's folder with a grader and its mistakes, and
the row in the plan; the table of contents finds notebooks by itself. What is left to the author is in five
places: the notebooks, the folder, the row in ``book/lessons.yml``, the claims in ``book/claims.yml`` and the
glossary.
"""

import argparse
import json
import re
import uuid
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
CELL = re.compile(r"^```python ?([\w,-]*)\n(.*?)^```\n", flags=re.M | re.S)
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def notebook(text):
    """Return a notebook from Markdown, in which each fence of Python is a cell with its tags."""
    cells, end = [], 0
    for fence in [*CELL.finditer(text), None]:
        prose = text[end : fence.start() if fence else len(text)].strip().replace("~~~", "```")
        if prose:
            cells.append(_cell("markdown", prose, {}))
        if fence:
            tags = [tag for tag in fence[1].split(",") if tag]
            cells.append(_cell("code", fence[2].rstrip(), {"tags": tags} if tags else {}))
            end = fence.end()
    return {"cells": cells, "metadata": METADATA, "nbformat": 4, "nbformat_minor": 5}


def _cell(kind, source, metadata):
    cell = {"cell_type": kind, "id": uuid.uuid4().hex[:8], "metadata": metadata}
    code = {"execution_count": None, "outputs": []} if kind == "code" else {}
    return cell | code | {"source": source.splitlines(keepends=True)}


def setup_cell(root):
    """Return the set-up cell that all notebooks share, from the first of them."""
    cells = json.loads(min(Path(root, "notebooks").glob("*.ipynb")).read_text(encoding="utf-8"))["cells"]
    return next("".join(cell["source"]) for cell in cells if "setup" in cell["metadata"].get("tags", []))


def write(slug, title, question, root=ROOT):
    """Write a lesson's files and its row in the plan.

    Args:
        slug: Of the lesson: small letters and underscores.
        title: The concept by its usual name.
        question: That the lesson answers.
        root: Of the book.

    Returns:
        The files that were written or changed.

    Raises:
        ValueError: If the slug is no name of a package, or the lesson is there.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]*", slug):
        raise ValueError(f"expected a slug in small letters and underscores, got {slug!r}")
    plan = Path(root, "book", "lessons.yml")
    planned = plan.read_text(encoding="utf-8")
    rows = yaml.safe_load(planned)
    folder = Path(root, "lib", "exformer_lessons", slug)
    row = next((row for row in rows if row["slug"] == slug), None)
    if list(Path(root, "notebooks").glob(f"[0-9][0-9]_{slug}.ipynb")):
        raise ValueError(f"there is a lesson {slug!r} already")
    number = row["number"] if row else f"{max(int(row['number']) for row in rows) + 1:02}"
    names = {"slug": slug, "title": title, "question": question, "number": int(number)}
    names |= {"words": title[0].lower() + title[1:], "setup": setup_cell(root)}
    pages = {"lesson.md": f"{number}_{slug}", "evidence.md": f"evidence/{slug}"}
    files = {
        Path(root, "notebooks", f"{name}.ipynb"): json.dumps(notebook(_filled(page, names)), indent=1)
        for page, name in pages.items()
    }
    files |= {
        folder
        / "__init__.py": f'"""The lesson on {names["words"]}: grader, mistakes, sabotages, records."""',
        folder / "grader.py": _filled("grader.py.txt", names).rstrip(),
        folder / "mistakes.py": _filled("mistakes.py.txt", names).rstrip(),
    }
    files = {path: text for path, text in files.items() if not path.exists()}  # evidence may be there already
    new = {"number": number, "slug": slug, "title": title, "question": question}
    new |= {"after": [rows[0]["slug"]], "able": ["…", "…"]}
    text = yaml.safe_dump([new], sort_keys=False, allow_unicode=True, width=200)
    before, _, after = re.split(rf"^(- {{.*slug: {slug},.*\n|\Z)", planned, maxsplit=1, flags=re.M)
    files[plan] = f"{before}{text}{after}".rstrip()
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n", encoding="utf-8")
    return list(files)


def _filled(template, names):
    text = Path(ROOT, "book", "_templates", template).read_text(encoding="utf-8")
    for name, value in names.items():
        text = text.replace(f"{{{name}}}", str(value))
    return text


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("slug")
    parser.add_argument("--title", required=True)
    parser.add_argument("--question", required=True)
    asked = parser.parse_args()
    try:
        written = write(asked.slug, asked.title, asked.question)
    except ValueError as error:
        parser.error(str(error))
    print(*(path.relative_to(ROOT) for path in written), sep="\n")
