"""The public side of the question bank: enough questions, sealed answers that fit, and no private file."""

import base64
import hashlib
import re
import shutil
import subprocess
from pathlib import Path

import made_pages
import pytest
import yaml
from course import parts
from questions import bank, by_objective, left_out
from test_plain_markdown import not_plain

from exformer_lessons.teacher import assignments
from exformer_lessons.teacher.__main__ import run
from exformer_lessons.teacher.answers import MARK, digest, read_manifest, sealed_file
from exformer_lessons.teacher.exams import READING, Exam, read_exams
from exformer_lessons.teacher.questions import KINDS, lessons_with_questions, read_questions
from exformer_lessons.teacher.sealing import read_recipients
from exformer_lessons.teacher.sheets import FACTOR, saved

ROOT = Path(__file__).parents[2]
TEACH = ROOT / "book" / "teach"
LESSONS = lessons_with_questions(TEACH)
ABLE = {
    row["slug"]: row["able"]
    for row in yaml.safe_load((ROOT / "book/lessons.yml").read_text("utf-8"))
    if "able" in row
}
EXAMS = read_exams(TEACH)
PRIVATE = {
    "a private key": re.compile(rb"AGE-SECRET-KEY-(?:PQ-)?1[0-9A-Z]{20}"),
    "a plain answer": re.compile(rb"^(?:> )?" + re.escape(MARK.encode()), flags=re.MULTILINE),
    "a plain assignment": re.compile(rb"^" + assignments.FIRST.encode(), flags=re.MULTILINE),
    "points of an answer": re.compile(rb"^(?:> )?- \d+ points?: ", flags=re.MULTILINE),
}


def private_parts(data):
    """Return what must be in no file of the repository."""
    return [name for name, form in PRIVATE.items() if form.search(data)]


def readers(sealed):
    """Return how many keys open a file: its header has a line for each."""
    head, _, _ = sealed.partition(b"\n--- ")
    first, *lines = head.split(b"\n")
    assert first == b"age-encryption.org/v1"
    shares = [line.split()[2] for line in lines if line.startswith(b"-> X25519 ")]
    assert all(len(base64.b64decode(share + b"=")) == 32 for share in shares)
    return len(shares)


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_lesson_has_questions_of_each_kind(lesson: str) -> None:
    found = read_questions(TEACH, lesson)
    assert len(found) >= 8
    for kind in KINDS:
        assert sum(each.kind == kind for each in found) >= 2, kind
    assert {each.objective for each in found} == set(range(1, 1 + len(ABLE[lesson])))


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_question_is_plain_markdown(lesson: str) -> None:
    for each in read_questions(TEACH, lesson):
        assert not_plain(each.text, TEACH) == [], each.name
        assert re.fullmatch(r"[a-z]+(-[a-z0-9]+)*", each.id)


@pytest.mark.parametrize("lesson", LESSONS)
def test_sealed_answers_belong_to_the_questions(lesson: str) -> None:
    questions, entry = read_questions(TEACH, lesson), read_manifest(TEACH)[lesson]
    assert sorted(entry["ids"]) == sorted(each.id for each in questions)
    assert entry["questions"] == digest(questions), "a question has changed: seal its answers again"


@pytest.mark.parametrize("exam", [each for each in EXAMS if not each.questions], ids=lambda exam: exam.key)
def test_a_sealed_exam_tells_its_lessons_alone(exam: Exam) -> None:
    assert set(read_manifest(TEACH)[exam.sealed]) == {"asks", "file", "recipients"}


@pytest.mark.parametrize("name", read_manifest(TEACH))
def test_a_sealed_file_is_listed_and_is_for_all_readers(name: str) -> None:
    entry, sealed = read_manifest(TEACH)[name], sealed_file(TEACH, name).read_bytes()
    assert entry["file"] == hashlib.sha256(sealed).hexdigest()
    listed = read_recipients(TEACH / "recipients.txt")
    assert entry["recipients"] == listed, "recipients.txt has changed: run rekey"
    assert readers(sealed) == len(listed)


def test_nothing_is_sealed_without_questions() -> None:
    names = {*LESSONS, *(each.sealed for each in EXAMS if not each.questions)}
    sealed = [name for name in assignments.names(TEACH) if not assignments.is_open(TEACH, name)]
    names |= {*map(assignments.sealed_name, sealed)}
    assert set(read_manifest(TEACH)) == names
    assert {path.stem for path in (TEACH / "questions").glob("*.age")} == names


@pytest.mark.parametrize("exam", EXAMS, ids=lambda exam: exam.key)
def test_an_exam_fits_into_90_minutes(exam: Exam) -> None:
    assert (exam.minutes, exam.points) == (90, 60)
    assert {kind for _, kind, _ in exam.asks} == set(KINDS)
    bounds = list(exam.grades.values())
    assert bounds == sorted(bounds, reverse=True)
    assert exam.points > bounds[0] > bounds[-1] >= 0.4 * exam.points


@pytest.mark.parametrize("lesson", LESSONS)
def test_the_parts_of_a_question_have_points(lesson: str) -> None:
    for question in read_questions(TEACH, lesson):
        parts = re.findall(r"^\d\. (.*)$", question.text, flags=re.MULTILINE)
        points = [int(each) for each in re.findall(r" \*\*\[(\d)\]\*\*$", question.text, flags=re.MULTILINE)]
        if points:
            assert all(part.endswith("]**") for part in parts), question.name
            assert sum(points) == question.minutes, question.name
        else:  # no parts, or a list of something else
            assert not parts or question.name == "self_attention/where-it-leaks"


def taught_in(key: str) -> set[str]:
    """Return what a plan teaches."""
    ways = yaml.safe_load((ROOT / "book" / "courses.yml").read_text(encoding="utf-8"))
    meetings = next(way["meetings"] for way in ways if way["key"] == key)
    return {slug for words in meetings for _, slug in parts(words)}


@pytest.mark.parametrize(
    ("keys", "course"),
    [
        ("ACDNP", "core-14-90"),
        ("BDG", "half-8-90"),
        ("HMR", "today-14-90"),
        ("ST", "language-14-90"),
        ("EFHLMQRST", "all-28-90"),
        ("JK", "nlp-8-90"),
    ],
)
def test_an_exam_asks_what_its_course_has_taught(keys: str, course: str) -> None:
    taught = taught_in(course)
    asked = [{lesson for lesson, _, _ in exam.asks} for exam in EXAMS if exam.key in keys]
    assert all(lessons <= taught for lessons in asked)
    if course == "half-8-90":
        assert all(lessons == {slug for slug in taught if slug in LESSONS} for lessons in asked)


YEARS = [
    line.strip("| ").split(" | ")
    for line in (TEACH / "exams.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| *")
]
#: The key of a plan, for each course of the table of years.
COURSE = {
    "*the core*": "core-14-90",
    "*the transformer alone*": "half-8-90",
    "*to today's models*": "today-14-90",
    "*language models for NLP*": "language-14-180",
    "*all twenty lessons*": "all-28-90",
    "*half of an NLP course*": "nlp-8-90",
    "*lessons 13 to 20, in a second term*": "all-28-90",
}


#: Lessons 14 to 20, which have half of the points in each exam of a course that goes so far, a quarter where
#: it teaches three of them, and nearly all in those of a course that comes after the core.
LATE = {
    row["slug"]
    for row in yaml.safe_load((ROOT / "book/lessons.yml").read_text("utf-8"))
    if "14" <= row["number"] <= "20"
}


def numbered(exam: Exam) -> set[str]:
    """Return the names of its questions."""
    return {*exam.questions} or {f"{exam.key}/{n}" for n in range(1, 1 + len(exam.asks))}


def test_the_table_of_years_has_a_row_for_each_course() -> None:
    assert [row[0] for row in YEARS] == list(COURSE)


@pytest.mark.parametrize("row", YEARS, ids=lambda row: COURSE[row[0]])
def test_exams_of_a_course_ask_once_and_what_it_taught(row: list[str]) -> None:
    taught = taught_in(COURSE[row[0]])
    told = re.findall(r"\b([A-Z])\b", ", ".join(row[1:]))
    named = {exam.key: exam for exam in EXAMS if exam.key in told}
    asked = [name for exam in named.values() for name in numbered(exam)]
    assert len(named) >= 2
    assert len(asked) == len({*asked})
    for exam in named.values():
        assert left_out(exam, taught) == "all"
        late = sum(points for lesson, _, points in exam.asks if lesson in LATE)
        if "second term" in row[0]:
            assert late > 50, exam.key
        else:
            wanted = {0: 0, 3: 15}.get(len(taught & LATE), 30)
            assert late == pytest.approx(wanted, abs=1), exam.key


def test_resits_of_the_core_ask_about_all_of_it() -> None:
    core = {
        row["number"]: row["slug"]
        for row in yaml.safe_load((ROOT / "book/lessons.yml").read_text("utf-8"))
        if row["number"] <= "13"
    }
    asked = {exam.key: {lesson for lesson, _, _ in exam.asks} for exam in EXAMS}
    assert [key for key in "NCRM" if "self_attention" in asked[key]] == ["N", "R"]
    assert [key for key in "TS" if "language_model" in asked[key]] == ["T"]
    assert {*core.values()} - asked["C"] == {core[n] for n in ("03", "05", "07", "09", "11")} <= asked["N"]
    assert asked["N"] | asked["P"] == {*core.values()}


def test_a_plan_has_the_exam_and_the_resit_of_its_course() -> None:
    ways = yaml.safe_load((ROOT / "book" / "courses.yml").read_text(encoding="utf-8"))
    sealed = {row[0].strip("*"): row[1:3] for row in YEARS}
    assert all(sealed[way["title"][0].lower() + way["title"][1:]] == way["sealed"] for way in ways)


def test_grades_may_be_thirds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(TEACH, tmp_path / "teach")
    shutil.copy(ROOT / "book" / "lessons.yml", tmp_path)
    exams = tmp_path / "teach" / "exams.yml"
    text = exams.read_text(encoding="utf-8")
    [thirds] = re.findall(r"^#   (grades: &grades .+)$", text, flags=re.M)
    exams.write_text(re.sub("^  grades: &grades .+$", f"  {thirds}", text, flags=re.M), encoding="utf-8")
    marks, exam = tmp_path / "marks.csv", ["exam", "A", "--folder", str(tmp_path / "teach")]
    assert run([*exam, "--marks", str(marks)]) == 0
    most = [points for *_, points in EXAMS[0].asks]
    rows = {"Ada": most, "Bo": [most[0] - 6, *most[1:]], "Cy": [0] * len(most)}
    with marks.open("a", encoding="utf-8") as file:
        file.writelines(f"{name},{','.join(map(str, row))}\n" for name, row in rows.items())
    capsys.readouterr()
    assert run([*exam, "--marks", str(marks)]) == 0
    told = [line.split(",") for line in capsys.readouterr().out.splitlines()[1:]]
    assert [(row[0], *row[-2:]) for row in told] == [
        ("Ada", "60", "1.0"),
        ("Bo", "54", "1.3"),
        ("Cy", "0", "5.0"),
    ]


@pytest.mark.parametrize("lesson", LESSONS)
def test_the_bank_is_folded_on_the_page_of_its_lesson(lesson: str) -> None:
    found = read_questions(TEACH, lesson)
    told = f"{len(found)} questions, {sum(each.minutes for each in found)} points"
    head, _, sheet = bank(TEACH, lesson).partition(f"<details><summary>{told}</summary>\n\n")
    assert head.startswith("## Bank\n\n| Objective | Bank | With a public scheme |\n")
    assert all(each.text in sheet for each in found)
    assert sheet.count("</details>") == 1


def test_an_oral_resit_has_the_limits_of_an_exam() -> None:
    page = (TEACH / "exams.md").read_text(encoding="utf-8").partition("(oral-resit)=")[2]
    points = [int(found) for found in re.findall(r"\w: (\d+) \|", page.partition("\n|---")[0])]
    assert points == [20, 15, 10, 5, 0]
    for hints, name in ((1, "good"), (2, "pass")):
        earned = [
            next(grade for grade, least in exam.grades.items() if 3 * points[hints] >= least)
            for exam in EXAMS
        ]
        assert {*earned} == {name}
    assert "a hint for each question is *good*, two are a *pass*" in page


def test_each_question_of_the_bank_has_its_objective() -> None:
    found = {lesson: by_objective(TEACH, lesson) for lesson in LESSONS}
    first = "explain what several narrow heads keep apart and one wide head blends"
    assert found["multi_head_attention"][first] == ["5, 6, 7", "`exam_language` 2, `test_1` 2, sheet 1"]
    for lesson, rows in found.items():
        assert [*rows] == ABLE[lesson]
        numbers = sorted(map(int, re.findall(r"\d+", ", ".join(here for here, _ in rows.values()))))
        assert numbers == [*range(1, 1 + len(read_questions(TEACH, lesson)))]
    taken = re.findall(r"\d \(([A-Z])\)", str(found))
    assert {key: taken.count(key) for key in taken} == {"A": 8, "B": 8}  # J and K are sealed


@pytest.fixture
def third_year(tmp_path) -> list[Exam]:
    """Give all exams of the folder that the page of keys makes, last the two of its example."""
    (tmp_path / "book").symlink_to(ROOT / "book")
    page = (TEACH / "keys.md").read_text(encoding="utf-8")
    commands = re.search(r"```bash\n(.+?)```", page, flags=re.S)[1]
    subprocess.run(["bash", "-ec", commands], cwd=tmp_path, check=True)
    example = re.search(r"```yaml\n(.+?)```", page, flags=re.S)[1]
    with (tmp_path / "own" / "teach" / "exams.yml").open("a", encoding="utf-8") as file:
        file.write(f"\n{example}")
    return read_exams(tmp_path / "own" / "teach")


def test_a_variant_takes_what_the_page_says(third_year: list[Exam]) -> None:
    *before, exam, resit = third_year
    assert (exam.key, resit.key) == ("Y3", "Y4")
    asked = {name for each in before for name in each.questions}
    for variant in (exam, resit):
        assert (variant.minutes, variant.points) == (90, 60)
        assert {kind for _, kind, _ in variant.asks} == set(KINDS)
        for name, (_, kind, _) in zip(variant.questions, variant.asks, strict=True):
            seeded = re.fullmatch(r"[CN]/\d", name)
            assert bool(seeded) == (kind == "apply")  # a seed changes these
            assert seeded or name not in asked
    assert not {*exam.questions} & {*resit.questions}
    thirteen = {lesson for each in (exam, resit) for lesson, *_ in each.asks}
    assert thirteen == taught_in("core-14-90") & {*LESSONS}


def test_a_seed_changes_as_many_points_as_the_page_says() -> None:
    page = (TEACH / "exams.md").read_text(encoding="utf-8")
    bank = {each.name: each for lesson in LESSONS for each in read_questions(TEACH, lesson)}
    kinds = [each.kind for each in bank.values() if each.kind != "apply"]
    assert {kind: kinds.count(kind) for kind in {*kinds}} == dict.fromkeys(("recall", "prove", "design"), 40)
    drawn = [
        sum(points for _, kind, points in exam.asks if kind == "apply") for exam in EXAMS if not exam.public
    ]
    assert f"They carry {min(drawn)} to {max(drawn)} of the 60 points." in page


def test_two_of_eighteen_exams_are_public_and_the_rest_sealed() -> None:
    page = (TEACH / "exams.md").read_text(encoding="utf-8")
    assert "Eighteen exams of 90 minutes and 60 points are ready, A to T without I and O." in page
    assert [exam.key for exam in EXAMS] == [*"ABCDEFGHJKLMNPQRST"]
    assert [exam.key for exam in EXAMS if exam.public] == ["A", "B"]
    told = ", ".join(
        f"*{name}* from {least}" + " points" * (name == "very good")
        for name, least in EXAMS[0].grades.items()
    )
    assert f"The grades are a proposal: {told}." in page
    assert {tuple(exam.grades.items()) for exam in EXAMS} == {tuple(EXAMS[0].grades.items())}
    for exam in EXAMS[2:]:
        assert not any(set(name) & {*"abcdefgh"} for name in exam.questions), exam.key


def test_half_an_exam_and_a_midterm_fit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = (TEACH / "exams.md").read_text(encoding="utf-8")
    found = re.findall(r"([J-R])(?: and (K))? with `--without ([\d,]+)`", page)
    assert found == [("J", "K", "6,7,8,9"), ("R", "", "1,4"), ("M", "", "1,8")]
    for key, out in [(key, out) for first, second, out in found for key in (first, second) if key]:
        table = tmp_path / f"{key}.csv"
        words = ["exam", key, "--without", out, "--marks", str(table), "--folder", str(TEACH)]
        assert run(words) == 0
        points = [int(most) for most in table.read_text(encoding="utf-8").splitlines()[1].split(",")[1:]]
        exam = next(each for each in EXAMS if each.key == key)
        taken = exam.minutes - saved(exam.points - sum(points))
        if key in "JK":
            assert (sum(points), taken) == (30, 50)
            assert "half an exam, 30 points in 50 minutes." in page
            assert {"recall", "apply", "prove"} == {kind for _, kind, _ in exam.asks[: len(points)]}
        else:
            assert (sum(points), taken) == (48, 74)
            assert "has 48 points in 74:" in page
            assert READING + FACTOR * 49 > 75  # no more fit
    capsys.readouterr()


def test_exams_of_a_half_weigh_its_lessons_alike() -> None:
    first, second = ([*exam.asks] for exam in EXAMS if exam.key in "JK")
    for asks in (first, second):
        assert len({lesson for lesson, *_ in asks}) == len(asks) == 9  # one question each
    both = {lesson: sum(points for name, _, points in first + second if name == lesson) for lesson in LESSONS}
    assert set(filter(None, both.values())) <= {*range(6, 17)}
    assert {lesson for lesson, points in both.items() if points} == taught_in("nlp-8-90") & {*LESSONS}


def test_the_page_of_exams_says_whose_the_mock_exams_are() -> None:
    page = (TEACH / "exams.md").read_text(encoding="utf-8")
    _, *parts = re.search(r"three \[mock exams\].*", page)[0].split("one for ")
    named = [{*re.findall(r"\*(.+?)\*", part)} for part in parts]
    ways = yaml.safe_load((ROOT / "book" / "courses.yml").read_text(encoding="utf-8"))
    whose: dict[str, set[str]] = {}
    for way in ways:
        whose.setdefault(way["exam"], set()).add(way["title"][0].lower() + way["title"][1:])
    assert [*named[:2], set()] == [whose["exam_today"], whose["exam_language"], named[2]]
    assert set(whose) == {"exam", "exam_today", "exam_language"}


def test_no_page_tells_the_lessons_of_a_sealed_exam() -> None:
    pages = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "book").rglob("*.md"))
    assert not re.search(r"\b[C-T]'?s? (?:asks?|costs?) |question on \d\d\b", pages)
    assert "book/teach/exams" not in made_pages.MADE  # the command lists them


def test_the_command_lists_what_an_exam_asks(capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    assert run(["exam", "A", "--asks", "--folder", str(TEACH)]) == 0
    told = capsys.readouterr().out
    assert "| 8 | 13 Every task as text | 4 | recall | tasks/which-kind-of-error |\n" in told
    assert told.endswith("\n\nNothing on 03, 05, 07, 11.\n")
    monkeypatch.chdir(ROOT)
    assert run(["exam", "B", "--asks"]) == 0
    assert capsys.readouterr().out.endswith("\n\nNothing on 08, 09.\n")
    for key in "CR":
        assert run(["exam", key, "--asks", "--folder", str(TEACH)]) == 2
        assert f"exam {key} is sealed: expected --key FILE" in capsys.readouterr().err


def test_courses_that_follow_each_other_share_no_question() -> None:
    named = {exam.key: numbered(exam) for exam in EXAMS}
    core, second = (
        set().union(*(named[key] for key in re.findall(r"\b[A-Z]\b", " ".join(row[1:]))))
        for row in (YEARS[0], YEARS[-1])
    )
    assert not core & second


def test_what_a_plan_leaves_out_is_left_out_of_its_exam() -> None:
    exams = {exam.key: exam for exam in EXAMS}
    assert left_out(exams["H"], set(LESSONS) - {"faster"}) == "not 8"
    half = {"training", "preferences", "pretrained_weights", "scale"}  # 30 of the 60 points of F
    assert left_out(exams["F"], set(LESSONS) - half) == "–"
    assert left_out(exams["F"], set(LESSONS) - half | {"pretrained_weights"}) == "not 5, 6, 8"


@pytest.mark.parametrize(("points", "course"), [(60, "language-14-180"), (48, "today-12-75")])
def test_an_exam_without_a_key_has_what_its_course_taught(points: int, course: str, tmp_path: Path) -> None:
    page = (TEACH / "keys.md").read_text(encoding="utf-8")
    told = re.search(rf"these have {points}\b.*", page)[0]
    names = re.findall(r"`(\w+/[\w-]+)`", told)
    assert len({*names}) == len(names) >= 7
    assert not {*names} & {name for exam in EXAMS for name in exam.questions}
    (tmp_path / "questions").symlink_to(TEACH / "questions")
    row = {"key": "MINE", "title": "t", "minutes": {60: 90, 48: 75}[points], "rules": "r", "grades": {}}
    (tmp_path / "exams.yml").write_text(yaml.safe_dump([row | {"questions": names}]), encoding="utf-8")
    (exam,) = read_exams(tmp_path)
    assert exam.points == points
    assert {kind for _, kind, _ in exam.asks} == set(KINDS)
    assert {lesson for lesson, *_ in exam.asks} <= taught_in(course)
    if points == 48:
        rows = yaml.safe_load((ROOT / "book/lessons.yml").read_text("utf-8"))
        numbers = {row["slug"]: row["number"] for row in rows}
        assert f"after lesson {max(numbers[lesson] for lesson, *_ in exam.asks)}:" in told
        assert run(["exam", "MINE", "--folder", str(tmp_path)]) == 0


def test_no_question_of_the_bank_is_in_two_exams() -> None:
    names = [name for exam in EXAMS for name in exam.questions if not re.fullmatch(r"[A-Z]/\d", name)]
    assert names
    assert len(names) == len(set(names))


def test_no_file_of_the_repository_is_private() -> None:
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z"], capture_output=True, check=True)
    paths = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    assert len(paths) > 300
    found = [
        (path.name, each) for path in paths if path.is_file() for each in private_parts(path.read_bytes())
    ]
    assert not found


def test_what_is_private_is_recognized() -> None:
    assert private_parts(b"x\nAGE-SECRET-KEY-" + b"1" + 40 * b"Q") == ["a private key"]
    assert private_parts(f"{MARK}\nIt is 2.".encode()) == ["a plain answer"]
    assert private_parts(f"# Exam\n> {MARK}".encode()) == ["a plain answer"]
    assert private_parts(f"{assignments.FIRST}\nimport torch".encode()) == ["a plain assignment"]
    assert private_parts(b"It is 2.\n\n- 2 " + b"points: the sum") == ["points of an answer"]
    assert private_parts(b"A key begins with AGE-SECRET-KEY-1.") == []


def test_an_exam_says_whose_questions_its_key_does_not_open(tmp_path: Path, capsys) -> None:
    assert run(["keygen", str(tmp_path / "key")]) == 0
    for exam, says in (
        ("R", "exam R takes questions from exam F; exam_F: the file is"),
        ("F", "exam_F: the"),
    ):
        capsys.readouterr()
        assert run(["exam", exam, "--key", str(tmp_path / "key"), "--folder", str(TEACH)]) == 2
        said = capsys.readouterr().err
        assert says in said
        assert ("takes" in said) == (exam == "R")
