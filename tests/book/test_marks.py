"""The marks of a course: each part is weighed as the rules say, and who lacks what is told."""

import csv
from datetime import date
from pathlib import Path

import pytest
import yaml

from exformer_lessons.teacher.__main__ import run
from exformer_lessons.teacher.course_rules import read_rules
from exformer_lessons.teacher.days_late import days_late
from exformer_lessons.teacher.grade import Result
from exformer_lessons.teacher.gradebook import read_roster, write_gradebook
from exformer_lessons.teacher.marking import new_table

TEACH = Path(__file__).parents[2] / "book" / "teach"
ROSTER = """Identifier,Full name,Email address
Participant 1,Ada Lovelace,ada@x.org
Participant 2,Bo King,bo@x.org
Participant 3,Cy Young,cy@x.org
Participant 4,Di Mond,di@x.org
"""
GRADEBOOK = """\ufeffname,participant,email,id,cut,train,sum,feedback
Ada Lovelace,1,ada@x.org,Participant 1,8,20,28,Ties.
Bo King,2,bo@x.org,Participant 2,12,20,32,All of it is right.
Cy Young,3,cy@x.org,Participant 3,0,0,0,Nothing was handed in.
Di Mond,4,di@x.org,Participant 4,12,20,32,All of it is right.
"""
WORKSHEET = """Identifier,Email address,Last modified (submission)
Participant 91,ada@x.org,"Tuesday, 3 March 2026, 12:05 AM"
Participant 92,bo@x.org,"Sunday, 1 March 2026, 11:59 PM"
Participant 93,cy@x.org,-
Participant 94,di@x.org,"Monday, 9 March 2026, 12:05 AM"
"""
TYPED = """student,code written,code unanswered,code days late,talk
maximum,8,3,99,10
Ada Lovelace,6,1,,8
Bo King,8,0,,10
Cy Young,,,,5
Di Mond,8,"0,5",1,7
"""
EXAM = """student,1,2
maximum,30,30
Ada Lovelace,20,"14,5"
bo@x.org,30,30
Cy Young,ill,
Di Mond,9,9
"""
RULES = {
    "roster": "roster.csv",
    "typed": "typed.csv",
    "parts": {
        "code": {
            **{"weight": 30, "points": 40, "written": 8, "gradebook": "code.csv"},
            **{"worksheet": "sheet.csv", "due": "2026-03-01 23:59"},
        },
        "talk": {"weight": 10, "points": 10},
        "exam": {"weight": 60, "marks": "exam.csv"},
    },
    "late": {"percent": 10, "days": 3},
    "unanswered": 3,
    "excused": "exam",
    "grades": {"good": 75, "pass": 50},
}


def write(folder, name="", old="", new="", **rules):
    """Write a course, with a change in one file or in the rules."""
    files = {"roster": ROSTER, "code": GRADEBOOK, "sheet": WORKSHEET, "typed": TYPED, "exam": EXAM}
    for each, text in files.items():
        assert each != name or old in text
        changed = text.replace(old, new) if each == name else text
        (folder / f"{each}.csv").write_text(changed, encoding="utf-8")
    (folder / "rules.yml").write_text(yaml.safe_dump(RULES | rules, sort_keys=False), encoding="utf-8")
    return ["marks", str(folder / "rules.yml"), "--csv", str(folder / "out.csv")]


def marked(folder, capsys, *change, **rules):
    """Return the rows by e-mail, and what is said."""
    assert run(write(folder, *change, **rules)) == 0
    with (folder / "out.csv").open(encoding="utf-8-sig", newline="") as file:
        return {row["email"]: row for row in csv.DictReader(file)}, capsys.readouterr().out


def test_each_part_is_weighed(tmp_path, capsys) -> None:
    rows, _ = marked(tmp_path, capsys)
    told = {who[:2]: [*row.values()][4:9] for who, row in rows.items()}
    assert told["ad"] == ["18.13", "8", "34.5", "56.1", "pass"]  # (28 + 6) 0.8 (2/3), 8 and 34.5 of 60
    assert told["bo"] == ["40", "10", "60", "100.0", "good"]
    assert told["di"] == ["30", "7", "18", "47.5", "fail"]  # a typed day counts, not Moodle's eight
    assert rows["ada@x.org"]["feedback"] == "code: code 28, written 6, unanswered 1, days late 2"
    assert [*rows["ada@x.org"].values()][:4] == ["Ada Lovelace", "1", "ada@x.org", "Participant 1"]


def test_the_rules_say_what_a_day_and_a_question_cost(tmp_path, capsys) -> None:
    late = {"percent": 20, "days": 3}
    rows, _ = marked(tmp_path, capsys, "typed", "maximum,8,3", "maximum,8,4", late=late, unanswered=4)
    assert rows["ada@x.org"]["code"] == "15.3"  # (28 + 6) 0.6 (3/4)


def test_who_lacks_something_stays_open(tmp_path, capsys) -> None:
    rows, said = marked(tmp_path, capsys)
    assert [*rows["cy@x.org"].values()][4:] == [
        *("0", "5", "", "", "open"),
        "code: nothing handed in; exam: ill",
    ]
    assert said.endswith("4 students, 1 of them open\n  exam ill: Cy Young\n")
    rows, said = marked(tmp_path, capsys, "typed", "Bo King,8,0,,10", "Bo King,8,,,")
    assert (rows["bo@x.org"]["grade"], rows["bo@x.org"]["code"]) == ("open", "")
    assert "  code unanswered blank: Bo King\n  talk blank: Bo King\n" in said
    rows, said = marked(tmp_path, capsys, "exam", "Di Mond,9,9", "Dee Mond,9,9")
    assert "  exam absent: Di Mond\n" in said
    assert said.endswith("not in the roster, not counted: Dee Mond\n")
    rows, said = marked(tmp_path, capsys, "exam", "Di Mond,9,9", "Di Mond,9,")
    assert "  exam incomplete: 2: Di Mond\n" in said


def test_two_of_one_name_are_not_guessed(tmp_path, capsys) -> None:
    rows, said = marked(tmp_path, capsys, "roster", "Di Mond", "Bo King")
    assert "not in the roster, not counted: Bo King, Di Mond" in said
    assert "4 students, 3 of them open" in said
    assert rows["bo@x.org"]["grade"] == "open"


def test_who_left_the_course_is_told_by_name(tmp_path, capsys) -> None:
    _, said = marked(tmp_path, capsys, "code", "Di Mond,4,di@x.org,Participant 4", "Ed Moon,9,ed@x.org,9")
    assert said.endswith("not in the roster, not counted: Ed Moon\n")


def test_the_exam_takes_over_what_is_excused(tmp_path, capsys) -> None:
    rows, said = marked(tmp_path, capsys, "typed", "1,,8", "1,,excused")
    assert [*rows["ada@x.org"].values()][6:9] == ["34.5", "53.9", "pass"]  # 30 of 18.13/40, 70 of 34.5/60
    assert "code: code 28" in rows["ada@x.org"]["feedback"]
    assert "Ada" not in said
    rows, _ = marked(tmp_path, capsys, "exam", "Cy Young,ill", "Cy Young,excused")
    assert rows["cy@x.org"]["grade"] == "open"


def test_a_word_leaves_no_part_of_a_like_name_open(tmp_path, capsys) -> None:
    code = RULES["parts"]["code"] | {"weight": 20}
    parts = {"code": code, "code 2": code, "exam": RULES["parts"]["exam"]}
    columns = [
        f"{name} {what}" for name in ("code", "code 2") for what in ("written", "unanswered", "days late")
    ]
    typed = f"student,{','.join(columns)}\nmaximum,8,3,99,8,3,99\nBo King,8,0,,ill,,\n"
    rows, said = marked(tmp_path, capsys, "typed", TYPED, typed, parts=parts)
    assert (rows["bo@x.org"]["code"], rows["bo@x.org"]["code 2"]) == ("40", "")
    assert "  code 2 ill: Bo King\n" in said


def test_the_written_part_alone_counts(tmp_path, capsys) -> None:
    rows, _ = marked(tmp_path, capsys, "typed", "Cy Young,,,", "Cy Young,6,0,")
    assert rows["cy@x.org"]["code"] == "6"
    assert "code: code 0, written 6" in rows["cy@x.org"]["feedback"]


def test_who_was_ill_has_another_assignment(tmp_path, capsys) -> None:
    (tmp_path / "tuning.csv").write_text(
        GRADEBOOK.replace("0,0,0,Nothing was handed in.", "9,9,18,Ties."), "utf-8"
    )
    code = RULES["parts"]["code"] | {"instead": "tuning.csv"}
    typed = TYPED.replace("Cy Young,,,", "Cy Young,6,0,").replace('"0,5",1', "0,")
    rows, _ = marked(tmp_path, capsys, "typed", TYPED, typed, parts=RULES["parts"] | {"code": code})
    assert (rows["cy@x.org"]["code"], rows["bo@x.org"]["code"]) == ("24", "40")
    assert rows["di@x.org"]["code"] == "40"  # the first assignment was late, not this one


RESIT = """student,1
maximum,40
Ada Lovelace,
Bo King,10
Cy Young,30
Di Mond,20
"""


def again(folder, resit=RESIT, *, least=50):
    """Return parts whose exam has a resit."""
    (folder / "resit.csv").write_text(resit, encoding="utf-8")
    return RULES["parts"] | {"exam": RULES["parts"]["exam"] | {"resit": "resit.csv", "least": least}}


def test_a_resit_counts_for_who_did_not_pass(tmp_path, capsys) -> None:
    rows, said = marked(tmp_path, capsys, parts=again(tmp_path))
    told = {who[:2]: [*row.values()][6:9] for who, row in rows.items()}
    assert told["ad"] == ["34.5", "56.1", "pass"]
    assert told["bo"] == ["60", "100.0", "good"]  # it had passed, so 10 of 40 do not count
    assert told["cy"] == ["45", "50.0", "pass"]  # 30 of 40 are 45 of 60; it was ill
    assert told["di"] == ["30", "59.5", "pass"]
    assert rows["cy@x.org"]["feedback"].endswith("exam: resit, 30 of 40 points")
    assert said.endswith(
        "4 students, 0 of them open\n  exam: a resit of who had passed does not count: Bo King\n"
    )


def test_a_resit_may_be_failed_or_left_open(tmp_path, capsys) -> None:
    worse = RESIT.replace("Di Mond,20", "Di Mond,4").replace("Cy Young,30\n", "")
    rows, said = marked(tmp_path, capsys, parts=again(tmp_path, worse))
    assert [*rows["di@x.org"].values()][6:9] == ["6", "35.5", "fail"]  # its result counts, if worse
    assert "  exam ill: Cy Young\n" in said
    ill = RESIT.replace("Di Mond,20", "Di Mond,ill").replace("Cy Young,30", "Cy Young,")
    rows, said = marked(tmp_path, capsys, parts=again(tmp_path, ill))
    assert (rows["di@x.org"]["grade"], rows["cy@x.org"]["grade"]) == ("open", "open")
    assert "  exam resit ill: Di Mond\n" in said


def test_who_passed_the_exam_alone_may_repeat_it(tmp_path, capsys) -> None:
    low = {"grades": {"good": 75, "pass": 58}}  # Ada has 56.1, and 57.5% of the exam
    resit = RESIT.replace("Ada Lovelace,", "Ada Lovelace,36")
    rows, _ = marked(tmp_path, capsys, parts=again(tmp_path, resit), **low)
    assert (rows["ada@x.org"]["exam"], rows["ada@x.org"]["grade"]) == ("54", "good")


EXERCISES = """\ufeffname,participant,email,id,tokens/a,tokens/b,tasks/c,sum,feedback
Ada Lovelace,1,ada@x.org,Participant 1,1,0,1,2,c.
Bo King,2,bo@x.org,Participant 2,1,0,0,1,b. c.
Cy Young,3,cy@x.org,Participant 3,0,0,1,1,a. b.
"""
LATER = """\ufeffname,participant,email,id,tasks/c,tasks/d,sum,feedback
Bo King,2,bo@x.org,Participant 2,0,1,1,c.
Cy Young,3,cy@x.org,Participant 3,1,0,1,d.
"""


def test_who_is_not_admitted_is_named(tmp_path, capsys) -> None:
    for name, text in {"first": EXERCISES, "later": LATER}.items():
        (tmp_path / f"{name}.csv").write_text(text, encoding="utf-8")
    admission = {"exercises": ["first.csv", "later.csv"], "least": 50}
    rows, said = marked(tmp_path, capsys, admission=admission, parts=again(tmp_path))
    assert "2 of them open\n  exam not admitted: Cy Young, Di Mond\n" in said
    assert rows["cy@x.org"]["feedback"].endswith("exam: not admitted, 1 of 4 exercises")  # c counts once
    assert rows["di@x.org"]["feedback"].endswith("exam: not admitted, 0 of 4 exercises")
    assert (rows["di@x.org"]["exam"], rows["di@x.org"]["grade"]) == ("", "open")
    assert (rows["ada@x.org"]["grade"], rows["bo@x.org"]["grade"]) == ("pass", "good")


def test_a_gradebook_of_another_course_admits_nobody(tmp_path, capsys) -> None:
    other = EXERCISES.splitlines()[0] + "\nEve Other,9,eve@y.org,Participant 9,1,1,1,3,\n"
    (tmp_path / "first.csv").write_text(other, encoding="utf-8")
    assert run(write(tmp_path, admission={"exercises": ["first.csv"], "least": 50})) == 2
    assert "expected exercises of students in the roster, got none" in capsys.readouterr().err


def test_who_misses_the_exam_has_the_last_grade(tmp_path, capsys) -> None:
    exam = RULES["parts"]["exam"] | {"least": 60}
    grades = {"1.0": 90, "4.0": 50, "5.0": 0}
    rows, _ = marked(tmp_path, capsys, parts=RULES["parts"] | {"exam": exam}, grades=grades)
    assert [rows[f"{who}@x.org"]["grade"] for who in ("ada", "bo", "di")] == ["5.0", "1.0", "5.0"]


@pytest.mark.parametrize(
    ("typed", "points", "said"),
    [("0", "33.33", "0"), ("3", "23.33", "3"), ("4", "0", "4: too late"), ("", "0", "8: too late")],
)
def test_after_the_last_day_nothing_counts(tmp_path, capsys, typed, points, said) -> None:
    rows, _ = marked(tmp_path, capsys, "typed", '"0,5",1', f'"0,5",{typed}')
    assert rows["di@x.org"]["code"] == points
    assert rows["di@x.org"]["feedback"].endswith(f"days late {said}")


def test_a_part_can_be_failed(tmp_path, capsys) -> None:
    exam = RULES["parts"]["exam"] | {"least": 60}
    rows, _ = marked(tmp_path, capsys, parts=RULES["parts"] | {"exam": exam})
    assert (rows["ada@x.org"]["sum"], rows["ada@x.org"]["grade"]) == ("56.1", "fail")


@pytest.mark.parametrize(("points", "grade"), [("9,98", "pass"), ("9,96", "fail")])
def test_what_a_part_needs_is_reached_to_a_tenth(tmp_path, capsys, points, grade) -> None:
    exam = RULES["parts"]["exam"] | {"least": 50}  # 29.98 of 60 are 49.97%, which is shown as 50.0
    change = "exam", '20,"14,5"', f'20,"{points}"'
    rows, _ = marked(tmp_path, capsys, *change, parts=RULES["parts"] | {"exam": exam})
    assert rows["ada@x.org"]["grade"] == grade


@pytest.mark.parametrize(("points", "told"), [("4,94", "74.9 pass"), ("4,96", "75.0 good")])
def test_a_grade_is_that_of_the_sum_as_it_is_shown(tmp_path, capsys, points, told) -> None:
    rows, _ = marked(tmp_path, capsys, "exam", "bo@x.org,30,30", f'bo@x.org,30,"{points}"')
    assert f"{rows['bo@x.org']['sum']} {rows['bo@x.org']['grade']}" == told


def test_the_command_writes_what_is_to_be_filled_in(tmp_path, capsys) -> None:
    path = tmp_path / "new" / "course.yml"
    words = ["marks", str(path), "--csv", str(tmp_path / "out.csv"), "--folder", str(TEACH)]
    assert run(words) == 0
    assert "change what counts" in capsys.readouterr().out
    assert path.read_text(encoding="utf-8") == (TEACH / "marks.yml").read_text(encoding="utf-8")
    (path.parent / "roster.csv").write_text(ROSTER, encoding="utf-8")
    assert run(words) == 0
    table = (path.parent / "typed.csv").read_text(encoding="utf-8").splitlines()
    columns = "tokenizer written,tokenizer unanswered,tokenizer days late"
    assert table[0] == f"student,{columns},{columns.replace('tokenizer', 'decoder')},challenge"
    assert table[1:3] == ["maximum,8,3,99,8,3,99,10", "Ada Lovelace,,,,,,,"]
    assert run(words) == 2
    assert "there is no " in capsys.readouterr().err


CANVAS = """Student,ID,SIS Login ID,Section
"King, Bo",71,bo,A
"King, Bo",72,bo2,A
"Student, Test",9,x,A
"""


def test_two_of_one_name_in_canvas_keep_their_points(tmp_path, capsys) -> None:
    code = {"weight": 40, "points": 40, "written": 8, "gradebook": "code.csv"}
    parts = {"code": code, "exam": RULES["parts"]["exam"]}
    words = write(tmp_path, "roster", ROSTER, CANVAS, parts=parts)
    names = {20: "kingbo_71_12345_a.ipynb", 32: "kingbo_LATE_72_12346_a-1.ipynb"}
    results = [Result(name, "cut", "in part", "", 1.0, points, 32) for points, name in names.items()]
    write_gradebook(results, tmp_path / "code.csv", read_roster(tmp_path / "roster.csv"))
    columns = "student,code written,code unanswered,code days late"
    (tmp_path / "typed.csv").write_text(f"{columns}\nmaximum,8,3,99\nbo,8,0,\nbo2,8,0,1\n", "utf-8")
    (tmp_path / "exam.csv").write_text("student,1\nmaximum,10\nbo,10\nbo2,5\n", "utf-8")
    assert run(words) == 0
    assert capsys.readouterr().out.endswith("2 students, 0 of them open\n")
    with (tmp_path / "out.csv").open(encoding="utf-8-sig", newline="") as file:
        found = {row["id"]: (row["name"], row["code"], row["sum"]) for row in csv.DictReader(file)}
    assert found == {"71": ("King, Bo", "28", "88.0"), "72": ("King, Bo", "36", "66.0")}


@pytest.mark.parametrize(
    ("roster", "students"),
    [
        ("Full name,Email\nBo King,bo@x.org\nCy Young,cy@x.org\n", ["Bo King", "Cy Young"]),
        ("Full name,Email\nBo King,bo@x.org\nBo King,bk@x.org\n", ["bo@x.org", "bk@x.org"]),
        (CANVAS, ["bo", "bo2"]),
        ("Full name\nBo King\nBo King\n", ["Bo King", "Bo King"]),
    ],
)
def test_a_new_table_names_each_student(tmp_path, roster, students) -> None:
    (tmp_path / "roster.csv").write_text(roster, encoding="utf-8")
    table = new_table({"talk": 10}, read_roster(tmp_path / "roster.csv"))
    assert table.splitlines() == ["student,talk", "maximum,10", *(f"{name}," for name in students)]


def test_the_proposal_is_that_of_the_syllabus() -> None:
    rules = read_rules(TEACH / "marks.yml")
    bundle = yaml.safe_load((TEACH.parent / "bundles.yml").read_text(encoding="utf-8"))[2]
    weights = {name: part.weight for name, part in rules.parts.items()}
    assert weights["tokenizer"] == weights["decoder"] == bundle["each"][2]
    assert weights["challenge"] == bundle["challenge"]
    exam = yaml.safe_load((TEACH / "exams.yml").read_text(encoding="utf-8"))[0]["grades"]
    assert rules.grades == {grade: round(least / 0.6) for grade, least in exam.items()}
    page = (TEACH / "syllabus.md").read_text(encoding="utf-8")
    assert (rules.excused, rules.parts["exam"].least) == ("exam", 50)
    for words in (
        "You must pass the exam, and the weighted sum",
        "the exam takes over its weight",
        "15% each",
        "three questions without an answer costs a third",
        "a tenth",
        "after the third day",
    ):
        assert words in page
    assert (rules.late, rules.unanswered) == ({"percent": 10, "days": 3}, 3)


@pytest.mark.parametrize(
    ("told", "days"),
    [
        ("Sunday, 1 March 2026, 11:59 PM", 0),
        ("Monday, 2 March 2026, 12:00 AM", 1),
        ("Monday, 2 March 2026, 23:59", 1),
        ("3 March 2026, 12:00 AM", 2),
        ("-", 0),
    ],
)
def test_days_late(told, days) -> None:
    assert days_late({"Last modified (submission)": told}, "2026-03-01 23:59") == days


@pytest.mark.parametrize("due", [date(2026, 3, 1), "2026-03-01"])
def test_a_due_date_without_a_time_ends_with_its_day(due) -> None:
    for told, days in (("1 March 2026, 23:59", 0), ("2 March 2026, 00:00", 1)):
        assert days_late({"Last modified (submission)": told}, due) == days


@pytest.mark.parametrize(
    ("change", "rules", "says"),
    [
        (
            ("typed", "Bo King,8", "Bo King,9"),
            {},
            "Bo King, code written: expected 0 to 8 points, a word such as",
        ),
        (("typed", "Bo King,8", "Bo King,NaN"), {}, "a word such as ill, or nothing; got NaN"),
        (("code", "feedback", "remark"), {}, "expected what grade --gradebook wrote, with sum, feedback"),
        (("typed", "talk", "speech"), {}, "expected the first rows student,code written,"),
        (("exam", "maximum", "most"), {}, "expected the first rows student,… and maximum,…"),
        (("exam", "bo@x.org", "Ada Lovelace"), {}, "two for Ada Lovelace"),
        (("code", ",20,28,", ",20,38,"), {}, "expected at most 32 points, got 38"),
        (("sheet", "(submission)", "(Abgabe)"), {}, "expected a column Last modified (submission)"),
        (("sheet", "Tuesday, 3 March", "Dienstag, 3. März"), {}, "expected a date such as Monday"),
        ((), {"grades": {"pass": 50, "good": 75}}, "expected the best grade first"),
        ((), {"parts": {"exam": {"weight": 90, "points": 10}}}, "expected weights of 100 percent"),
        ((), {"parts": {"exam": {"weight": 100, "points": 10, "pints": 1}}}, "got pints, points, weight"),
        ((), {"parts": {"exam": {"weight": 100}}}, "expected points, weight, and perhaps least; got weight"),
        ((), {"parts": {"exam": {"weight": "100", "points": 9}}}, "a number as weight, got '100'"),
        ((), {"parts": {"exam": {"weight": 100, "marks": ["a"]}}}, "a file as marks, got ['a']"),
        ((), {"excused": "oral"}, "expected the fields of book/teach/marks.yml, got KeyError('oral')"),
        (
            (),
            {"parts": {"exam": {"weight": 100, "marks": "exam.csv", "instead": "resit.csv"}}},
            "exam: expected marks, weight, and perhaps least, resit; got instead, marks, weight",
        ),
        ((), {"admission": {"exercises": "code.csv", "least": 50}}, "expected admission: {exercises: ["),
        ((), {"admission": {"exercises": ["code.csv"], "least": 0.0}}, "a percentage of exercises as least"),
        ((), {"admission": {"exercises": ["code.csv"], "least": 50}}, "expected 0 or 1 for each exercise"),
        (
            (),
            {"parts": {"exam": {"weight": 100, "points": 9}}, "admission": {"exercises": ["x"], "least": 9}},
            "admission: no part has marks",
        ),
        ((), {"bonus": 3}, "expected the fields of book/teach/marks.yml"),
    ],
)
def test_refusals(tmp_path, capsys, change, rules, says) -> None:
    assert run(write(tmp_path, *change, **rules)) == 2
    assert says in capsys.readouterr().err
