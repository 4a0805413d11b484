"""What `make student` hands out: notebooks without outputs and solutions, whose links lead somewhere."""

import json
import re
from pathlib import Path

import nbformat
import pytest
import student
from folded_solutions import solutions

from exformer_lessons.handout import address_of, hand_out, handout

ROOT = Path(__file__).parents[2]
ADDRESS = "https://github.com/ada/book"
LESSONS = sorted(path.stem for path in (ROOT / "notebooks").glob("*.ipynb"))


@pytest.fixture(scope="module")
def handed_out(tmp_path_factory):
    """Hand out all notebooks of a book whose repository is known; return their folder."""
    folder = tmp_path_factory.mktemp("student")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BOOK_REPOSITORY_URL", ADDRESS)
        student.main([], folder)
    return folder


def code_of(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def prose_of(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")


@pytest.mark.parametrize("lesson", LESSONS)
def test_no_output_and_no_solution_is_handed_out(handed_out: Path, lesson: str) -> None:
    path = handed_out / f"{lesson}.ipynb"
    nbformat.validate(nbformat.read(path, as_version=4))
    given, ours = code_of(path), code_of(ROOT / "notebooks" / f"{lesson}.ipynb")
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in given)
    kept = ("source", "metadata", "id")
    assert address_of(json.loads(path.read_text(encoding="utf-8"))) == ADDRESS
    given[0]["source"] = [
        re.sub(r'^REPO = ".*"$', 'REPO = ""', line, flags=re.M) for line in given[0]["source"]
    ]
    assert [[cell[key] for key in kept] for cell in given] == [[cell[key] for key in kept] for cell in ours]
    text = path.read_text(encoding="utf-8")
    assert "<details>" not in text
    assert "Solution" not in prose_of(path)
    programs = solutions(lesson[3:])
    assert len(programs) >= 2
    for title, program in programs.items():
        assert f"({title}).**" in prose_of(path)
        assert program not in prose_of(path)


@pytest.mark.parametrize("lesson", LESSONS)
def test_links_of_what_is_handed_out_lead_somewhere(handed_out: Path, lesson: str) -> None:
    ours = re.findall(r"\]\(([^()\s]+)\)", prose_of(ROOT / "notebooks" / f"{lesson}.ipynb"))
    links = re.findall(r"\]\(([^()\s]+)\)", prose_of(handed_out / f"{lesson}.ipynb"))
    assert len(links) > 0.8 * len(ours)
    for link in links:
        target = link.partition("#")[0]
        if target.startswith(f"{ADDRESS}/blob/HEAD/"):
            assert (ROOT / target.removeprefix(f"{ADDRESS}/blob/HEAD/")).is_file(), link
        elif target and not target.startswith("https://"):
            assert (handed_out / target).is_file(), link


def test_assignments_are_handed_out_as_they_are(handed_out: Path) -> None:
    ours = sorted((ROOT / "book" / "teach" / "assignments").glob("*.ipynb"))
    assert [path.read_bytes() for path in sorted((handed_out / "assignments").iterdir())] == [
        path.read_bytes() for path in ours
    ]
    for path in ours:  # nothing has to be taken out of them, and no link leads into the book
        assert all(cell["outputs"] == [] for cell in code_of(path))
        assert not re.search(r"<details>|\]\((?!https:)", prose_of(path))


def one(source, address=""):
    """Hand out one cell of Markdown of lesson 03, of a book with an address."""
    setup = {"cell_type": "code", "metadata": {"tags": ["setup"]}, "source": f'REPO = "{address}"'}
    cell = {"cell_type": "markdown", "metadata": {}, "source": source}
    given = handout({"cells": [setup, cell]}, "03.ipynb", together={"03.ipynb", "04.ipynb"})
    return ["".join(cell["source"]) for cell in given["cells"][1:]]


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("[x](04.ipynb#A)", "[x](04.ipynb#A)"),
        ("[x](#A) [y](https://example.org)", "[x](#A) [y](https://example.org)"),
        ("[x](05.ipynb#A)", "[x](https://a/blob/1f/notebooks/05.ipynb#A)"),
        ("[x](evidence/x.ipynb)", "[x](https://a/blob/1f/notebooks/evidence/x.ipynb)"),
        ("[the\nx](../book/glossary.md#x)", "[the\nx](https://a/blob/1f/book/glossary.md#x)"),
        ("[`f()`](../lib/f.py) `[a](b)`", "[`f()`](https://a/blob/1f/lib/f.py) `[a](b)`"),
        ("```\n[a](b)\n```", "```\n[a](b)\n```"),
        ("One.\n\n<details>\n<summary>Solution</summary>\n\nTwo.\n\n</details>\n\nThree.", "One.\n\nThree."),
    ],
)
def test_what_becomes_of_a_cell(source: str, wanted: str) -> None:
    assert one(source, address="https://a@1f") == [wanted]


def test_without_a_repository_links_into_the_book_are_words() -> None:
    assert one("[x](../book/glossary.md#x), [y](04.ipynb)") == ["x, [y](04.ipynb)"]


def test_a_cell_that_held_a_solution_alone_is_left_out() -> None:
    assert one("<details>\n<summary>Solution</summary>\n\nTwo.\n\n</details>") == []


def test_one_lesson_can_be_handed_out(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("BOOK_REPOSITORY_URL", ADDRESS)
    student.main(["self_attention"], tmp_path)
    [lesson] = tmp_path.glob("*.ipynb")
    assert lesson.name.endswith("_self_attention.ipynb")
    assert re.search(rf"]\({ADDRESS}/blob/HEAD/notebooks/\d\d_multi_head_attention.ipynb\)", prose_of(lesson))


def test_what_a_student_has_written_stays(tmp_path: Path) -> None:
    work = tmp_path / "03_self_attention.ipynb"
    work.write_text("mine", encoding="utf-8")
    written, kept = hand_out([], tmp_path, keep=True)
    assert kept == [work]
    assert work.read_text(encoding="utf-8") == "mine"
    assert {path.name for path in written} >= {f"{lesson}.ipynb" for lesson in LESSONS} - {work.name}
    assert prose_of(tmp_path / "labs" / "island.ipynb").count("](../13_tasks.ipynb)") == 1
