"""The gradebook: one row for each student, found in the roster or named, which no spreadsheet runs."""

import csv
import re
import shlex
from pathlib import Path

import pytest

from exformer_lessons.teacher import __main__ as main
from exformer_lessons.teacher import grade
from exformer_lessons.teacher.grade import Result
from exformer_lessons.teacher.gradebook import UNKNOWN, read_roster, write_gradebook

PAGE = Path(__file__).parents[2] / "book" / "teach" / "grading.md"
WORKSHEET = """Identifier,Full name,Email address,Status,Grade
Participant 1000001,Zoë O'Hara,zoe@example.org,Submitted,
Participant 1000002,Ada Lovelace,ada@example.org,Submitted,12
Participant 1000003,Ada Lovelace,ada2@example.org,Submitted,
Participant 1000004,"King, Martin",mk@example.org,No submission,
"""
ZOE = "Zoe\u0308 OHara_1000001_assignsubmission_file_"
FORMULA = "=1+1"


def row(student, exercise="encode", result="passed", *, hint="", lesson="tokens", points=0, full=0):
    return Result(student, exercise, result, hint, 1.0, points, full, lesson)


def written(folder, rows, worksheet=""):
    """Write a gradebook; return its rows by the first that identifies one, and what is said."""
    (folder / "worksheet.csv").write_text(worksheet, encoding="utf-8")
    roster = read_roster(folder / "worksheet.csv") if worksheet else []
    said = write_gradebook(iter(rows), folder / "out.csv", roster)
    with (folder / "out.csv").open(encoding="utf-8-sig", newline="") as file:
        table = [*csv.DictReader(file)]
    found = {each["name"] if each.get("email", UNKNOWN) == UNKNOWN else each["email"]: each for each in table}
    assert len(found) == len(table)
    return found, said


def test_one_row_a_student_whose_best_file_counts(tmp_path):
    rows = [
        row(f"{ZOE}/03.ipynb", "encode", "refused", hint="Off, by one."),
        row(f"{ZOE}/again/03.ipynb"),
        row(f"{ZOE}/last/03.ipynb", "encode", "refused", hint="Worse."),
        row(f"{ZOE}/again/03.ipynb", "train", "refused", hint="It, too."),
        row("s17/04.ipynb", "split", lesson="multi_head_attention"),
        row("loose.ipynb", "", "error", hint="The notebook cannot be read", lesson=""),
    ]
    found, said = written(tmp_path, rows)
    assert (tmp_path / "out.csv").read_bytes().startswith(b"\xef\xbb\xbfname,participant,tokens/encode,")
    zoe = "1000001 1 0 0 1 tokens/train: It, too. Not handed in: multi_head_attention/split."
    assert " ".join([*found["Zoe\u0308 OHara"].values()][1:]) == zoe
    assert (found["s17"]["sum"], found["loose"]["sum"]) == ("1", "0")
    assert found["loose"]["feedback"].startswith("The notebook cannot be read Not handed in: tokens/encode, ")
    assert said.endswith("3 students, 0 of them handed in nothing")


def test_folders_of_weeks_hide_no_student(tmp_path):
    rows = [
        row(f"week3/{ZOE}/03.ipynb"),
        row(f"week4/{ZOE}/04.ipynb", "split"),
        row("week4/ada@example.org/a.ipynb"),
    ]
    found, said = written(tmp_path, rows, WORKSHEET)
    assert [found[f"{who}@example.org"]["sum"] for who in ("zoe", "ada", "ada2")] == ["2", "1", "0"]
    assert said.endswith("4 students, 2 of them handed in nothing")
    found, said = written(tmp_path, rows[:2])
    assert (found["Zoe\u0308 OHara"]["sum"], said[-40:]) == ("2", " 1 students, 0 of them handed in nothing")


def test_a_worksheet_in_another_language_has_names(tmp_path):
    _, *rest = WORKSHEET.splitlines(keepends=True)
    french = "Identifiant,Nom complet,Adresse de courriel,Statut,Note\n" + "".join(rest)
    found, _ = written(tmp_path, [row(f"{ZOE}/03.ipynb")], french.replace("Participant ", "Participant"))
    assert (found["zoe@example.org"]["name"], found["zoe@example.org"]["sum"]) == ("Zoë O'Hara", "1")
    assert [*written(tmp_path, [], "Teilnehmer\nTeilnehmer 7\n")[0]] == ["Teilnehmer 7"]
    assert written(tmp_path, [], "Nummer,E-Mail\n17,a@x.org\n")[0]["a@x.org"]["name"] == "17"


def test_points_of_an_assignment_add_up_once(tmp_path):
    told = {"lesson": "", "full": 4}
    rows = [
        row("a/x.ipynb", "merge", "in part", hint="Ties (0 of 1).", points=3, **told),
        row("a/x.ipynb", "cut", points=4, **told),
        row("a/x.ipynb", "total", "total", lesson="", points=7, full=8),
    ]
    [found] = written(tmp_path, rows)[0].values()
    assert [*found.items()][2:5] == [("merge", "3"), ("cut", "4"), ("sum", "7")]
    assert found["feedback"] == "merge: Ties (0 of 1)."


def test_a_wrong_file_is_told_to_its_student(tmp_path):
    lost = row(f"{ZOE}/x.pdf", "", "no notebook", hint="It has no notebook: x.pdf.", lesson="")
    found, said = written(tmp_path, [row("King Martin/a.ipynb"), lost], WORKSHEET)
    assert found["zoe@example.org"]["feedback"] == "It has no notebook: x.pdf. Not handed in: tokens/encode."
    assert "2 of them handed in nothing" in said


def test_a_roster_fills_in_and_lists_who_handed_in_nothing(tmp_path):
    names = [ZOE, "Ada Lovelace_1000003_assignsubmission_file", "Bob_7_assignsubmission_file_", FORMULA]
    found, said = written(tmp_path, [row(f"{name}/03.ipynb") for name in names], WORKSHEET)
    sums = {name: each["sum"] for name, each in found.items()}
    people = {"zoe@example.org": "1", "ada@example.org": "0", "ada2@example.org": "1", "mk@example.org": "0"}
    assert sums == people | {"Bob": "1", f"'{FORMULA}": "1"}
    told = [found[f"{who}@example.org"]["feedback"] for who in ("zoe", "mk")]
    assert told == ["All of it is right.", "Nothing was handed in."]
    assert {found[each][key] for each in ("Bob", f"'{FORMULA}") for key in ("email", "id")} == {
        "not in the roster"
    }
    assert said.endswith(f"6 students, 2 of them handed in nothing; {UNKNOWN}: Bob, {FORMULA}")


@pytest.mark.parametrize(
    ("folder", "worksheet"),
    [
        ("Participant_1000004_assignsubmission_file_", WORKSHEET),  # names are hidden
        ("s17", "ID number;First name;Last name;Email\ns17;Martin;King;mk@example.org\n"),
        ("s17", "ID number;Email;Groups\ns17;mk@example.org;1, 4, 7, 9, 12, 15\n"),
        ("Martin King", "First name,Last name,Email\nMartin,King,mk@example.org\n"),
        ("King Martin", "\ufeffFirst name,Last name,Email\nMartin,King,mk@example.org\n"),
        ("kingmartin_LATE_12_3456_a", 'Name,Email\n"King, Martin",mk@example.org\n'),  # of Canvas
    ],
)
def test_how_a_student_is_found(folder, worksheet, tmp_path):
    found, _ = written(tmp_path, [row(f"{folder}/03.ipynb")], worksheet)
    assert found["mk@example.org"]["sum"] == "1"


def test_no_cell_that_moodle_looks_up_is_empty(tmp_path):
    found, _ = written(tmp_path, [], "Full name,Their ID,Email\nZoe,,\nAda,s17,\n")
    assert (found["Zoe"]["email"], found["Zoe"]["id"], found["Ada"]["id"]) == (UNKNOWN, UNKNOWN, "s17")


def test_two_of_one_name_without_a_number_are_not_guessed(tmp_path):
    found, _ = written(tmp_path, [row("Ada Lovelace/03.ipynb")], WORKSHEET)
    assert found["Ada Lovelace"]["email"] == UNKNOWN


def test_a_number_is_no_id_of_another(tmp_path):
    other = "ID number,Full name,Email\n1000001,Eve,eve@example.org\ns1000001,Mallory,m@example.org\n"
    found, _ = written(tmp_path, [row(f"{ZOE}/03.ipynb")], other)
    assert found["eve@example.org"]["sum"] == found["m@example.org"]["sum"] == "0"


def test_no_cell_is_a_formula_or_ends_a_row(tmp_path):
    rows = [row(f"{FORMULA}, x\n@y/03.ipynb", exercise="", lesson="", result="error", hint="=2")]
    rows += [
        row(" =cmd()_1_assignsubmission_file_/03.ipynb"),
        *(row(f"{sign}SUM(A1)/03.ipynb") for sign in "@+-"),
    ]
    written(tmp_path, rows)
    with (tmp_path / "out.csv").open(encoding="utf-8-sig", newline="") as file:
        table = [*csv.reader(file)]
    assert {len(each) for each in table} == {5}
    assert not [cell for each in table for cell in each if cell.startswith(("=", "+", "-", "@"))]


def test_the_command_writes_both_tables(tmp_path, monkeypatch, capsys):
    rows = [row(f"{ZOE}/03.ipynb"), row(f"{ZOE}/03.ipynb", "train", "timeout"), row(f"{ZOE}/03.ipynb", "cut")]
    asked = {}
    monkeypatch.setattr(grade, "grade_folder", lambda *_, **given: asked.update(given) or iter(rows))
    (tmp_path / "worksheet.csv").write_text(WORKSHEET, encoding="utf-8")
    out = tmp_path / "done.csv", tmp_path / "grades.csv"
    more = "--gradebook", out[1], "--roster", tmp_path / "worksheet.csv", "--lesson", "tokens", "--seconds", 5
    assert main.run([*map(str, ("grade", tmp_path, "--csv", out[0], *more))]) == 0
    caps = {"seconds": 5, "megabytes": 512, "processes": 20}
    assert asked == {"lesson": "tokens", "caps": caps, "parts": []}
    told, said = capsys.readouterr()
    assert (
        f"{out[0]}: 2 passed, 1 timeout\n{out[1]}: 4 students, 3 of them handed in nothing\nLook at" in told
    )
    assert f"timeout   {ZOE}/03.ipynb train\n" in said
    assert [len(path.read_text(encoding="utf-8").splitlines()) for path in out] == [4, 5]


EXPORT = """Student,ID,SIS User ID,SIS Login ID,Section,tokenizer (77),Final Score
,,,,,Manual Posting,
    Points Possible,,,,,40,(read only)
"Lovelace, Ada",12345,s1,ada,CS 224,12,12
"Lovelace, Ada",12346,s2,ada2@example.org,CS 224,,
"King, Martin",12347,s3,king,CS 224,,
"Bo, Zoë",99,,,CS 224,,
"Student, Test",12399,,0a1b,CS 224,,
"""
CLASS = [
    "lovelaceada_12346_678910_03_self_attention-1.ipynb",
    "week3/lovelaceada_LATE_12345_678911_a.ipynb",
    "kingmartin_12348_678912_a.ipynb",  # of one name with another, and not in the roster
    "bozoë_99_678913_King_1_2.ipynb",
]


def test_canvas_names_files_by_a_users_id(tmp_path):
    found, said = written(tmp_path, [row(name) for name in CLASS], EXPORT)
    told = {who: (each["participant"], each["sum"]) for who, each in found.items()}
    assert told == {
        "ada": ("12345", "1"),
        "ada2@example.org": ("12346", "1"),
        "king": ("12347", "0"),
        "Bo, Zoë": ("99", "1"),
        "kingmartin": ("12348", "1"),
    }
    assert found["king"]["name"] == "King, Martin"
    assert not {"12", "cs224"} & read_roster(tmp_path / "worksheet.csv")[0].names  # points, and the section
    assert f"5 students, 1 of them handed in nothing; {UNKNOWN}: kingmartin\n" in said
    assert [*written(tmp_path, [row(CLASS[1])])[0]] == ["lovelaceada"]
    found, _ = written(tmp_path, [row(f"{each}/hw_2026_03_01.ipynb") for each in ("s17", "s18")])
    assert [*found] == ["s17", "s18"]  # a date in a name is no user


def test_canvas_imports_sums_and_nothing_else(tmp_path):
    full = {"lesson": "", "full": 16}
    rows = [row(CLASS[0], "merge", "in part", points=9, **full), row(CLASS[0], "cut", points=16, **full)]
    rows += [row(CLASS[2], "cut", points=16, **full)]
    _, said = written(tmp_path, rows, EXPORT)
    assert said.endswith(f"{tmp_path / 'out_canvas.csv'}: to import into Canvas")
    assert (tmp_path / "out_canvas.csv").read_text(encoding="utf-8") == (
        "Student,ID,SIS User ID,SIS Login ID,Section,out\n"
        "    Points Possible,,,,,32\n"
        '"Lovelace, Ada",12345,s1,ada,CS 224,0\n'
        '"Lovelace, Ada",12346,s2,ada2@example.org,CS 224,25\n'
        '"King, Martin",12347,s3,king,CS 224,0\n'
        '"Bo, Zoë",99,,,CS 224,0\n'
    )


def test_an_exercise_is_a_point_in_canvas(tmp_path):
    apart = EXPORT.replace("Student,ID", "LastName,FirstName,ID").replace(", ", '","')
    apart = apart.replace("\n,", "\n,,").replace("Possible,", "Possible,,")
    rows = [row(CLASS[0]), row(CLASS[0], "train", "refused"), row(CLASS[1], "", "error", lesson="")]
    written(tmp_path, rows, apart)
    head, most, *rows = (tmp_path / "out_canvas.csv").read_text(encoding="utf-8").splitlines()
    assert head.startswith("LastName,FirstName,ID,")
    assert most == "    Points Possible,,,,,,2"
    assert [each[:6] + each[-2:] for each in rows] == ["Lovela,0", "Lovela,1", "King,M,0", "Bo,Zoë,0"]


def test_no_other_roster_writes_a_table_for_canvas(tmp_path):
    _, said = written(tmp_path, [row(CLASS[0])], WORKSHEET)
    assert (f"{UNKNOWN}: lovelaceada" in said, "Canvas" in said) == (True, False)
    assert not (tmp_path / "out_canvas.csv").exists()


def test_the_page_writes_what_it_says(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(grade, "grade_folder", lambda *_, **__: iter([row(CLASS[0])]))
    monkeypatch.setattr(grade, "read_parts", lambda *_: [])
    monkeypatch.chdir(tmp_path)
    Path("roster.csv").write_text(EXPORT, encoding="utf-8")
    found = re.findall(r"^exformer-teacher (grade (?:\\\n|.)+)", PAGE.read_text("utf-8"), flags=re.M)
    for words in found:
        assert main.run(shlex.split(words.replace("\\\n", " ").replace("~/course", str(tmp_path)))) == 0
    assert "tokenizer_canvas.csv: to import into Canvas" in capsys.readouterr().out
    assert Path("tokenizer_canvas.csv").read_text(encoding="utf-8").partition("\n")[0].endswith(",tokenizer")
    assert {path.name for path in tmp_path.iterdir()} == {
        *("roster.csv", "done.csv", "exercises.csv", "exercises_canvas.csv"),
        *("tokenizer.csv", "tokenizer_canvas.csv"),
    }


@pytest.mark.parametrize(
    ("words", "content", "says"),
    [
        ((), b"Name\nAda\n", "expected --gradebook OUT with --roster"),
        (("--gradebook", "out.csv"), "Zoë".encode("latin-1"), "in UTF-8: save it as"),
        (("--gradebook", "out.csv"), b"Name\n", "and one for each student"),
    ],
)
def test_refusals(words, content, says, tmp_path, capsys):
    (tmp_path / "roster.csv").write_bytes(content)
    given = ["grade", str(tmp_path), "--csv", "x.csv", "--roster", str(tmp_path / "roster.csv"), *words]
    assert main.run(given) == 2
    assert says in capsys.readouterr().err
