"""Claims that depend on a training are recorded with other seeds, steps, learning rates and orders."""

import json
import platform
import re
from pathlib import Path

import pytest
import torch

from exformer_lessons import record, trials
from exformer_lessons.__main__ import run as command
from exformer_lessons.notebook import key_of, load, paths
from exformer_lessons.trials import RUNS, Trial, complaints, trial

LESSON = [
    "import torch\nfrom exformer import train\nfrom exformer_lessons.claims import claim\n"
    "from exformer_lessons.setup import start\nstart(seed=0)",
    "seed = 0\nn = 12\nother = 7",
    """
def learn(rate):
    torch.manual_seed(seed)
    model = torch.nn.Linear(1, 1)
    batches = [torch.rand(8, 1) for _ in range(n)]
    optimizer = torch.optim.SGD(model.parameters(), rate)
    loss_of = lambda model, x: (model(x) - 2 * x).square().mean()
    train(model, batches, loss_fn=loss_of, optimizer=optimizer)
    return model.weight.item()
""",
    "good, poor = learn(0.2), learn(0.01)",
    'claim("A01", holds=lambda good: abs(good - 2) < 3, says="It learns {good:.2f}.", good=good)',
    'claim("A02", holds=lambda poor: poor < 1.9, says="Slowly {poor:.2f}.", poor=poor, budget=True)',
]
UNTRAINED = 'claim("A03", holds=lambda n: n == 12, says="{n}", n=n)'


def cell_of(source, *tags, claim_id="", **values):
    """Return a code cell; values are those that its claim has stored."""
    says = (re.findall('says="([^"]*)"', source) or [""])[0]
    kept = {"exformer": {"id": claim_id, "says": says, "values": values}} if values else {}
    output = {"output_type": "display_data", "data": {}, "metadata": kept}
    return {"cell_type": "code", "metadata": {"tags": list(tags)}, "source": source, "outputs": [output]}


def book_of(folder, cells=LESSON):
    """Write a book of one lesson."""
    cells = [cell_of(each) if isinstance(each, str) else each for each in cells]
    path = Path(folder, "notebooks", "01_line.ipynb")
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"cells": cells}), encoding="utf-8")
    return load(path)


def perform(notebook, run):
    return record.perform(notebook, run, [each.claim_id for each in notebook.tried])[0]


# --- Runs ---


def test_runs_differ_in_what_they_are_named_for(tmp_path) -> None:
    notebook = book_of(tmp_path)
    rows = {run: perform(notebook, run)["A01"] for run in RUNS}
    base = rows["seed 0"]
    assert base == base | {"code": notebook.codes["A01"]}
    assert base["steps"] == 24
    assert rows["4x steps"]["steps"] == 96
    values = [row["values"]["good"] for row in rows.values()]
    assert len(set(values)) == len(RUNS)
    assert abs(rows["4x steps"]["values"]["good"] - 2) < abs(base["values"]["good"] - 2)
    assert abs(rows["rate/3"]["values"]["good"] - 2) > abs(base["values"]["good"] - 2)
    assert perform(notebook, "seed 0")["A01"] == base, "a run can be repeated"
    cells = [*LESSON[:3], "good = learn(0.2)", LESSON[4], "poor = learn(0.01)", LESSON[5]]
    one, two = perform(book_of(tmp_path, cells), "seed 0").values()
    assert (one["steps"], two["steps"], len(one["losses"])) == (12, 24, 1), "what comes later is not counted"


def test_divergence_of_a_training_that_one_claim_needs(tmp_path) -> None:
    cells = [*LESSON[:3], "poor = learn(0.01)\ngood = 1", "good = learn(float('inf'))", *LESSON[4:]]
    rows = perform(book_of(tmp_path, cells), "seed 0")
    assert rows["A01"]["diverged"].startswith("the loss is")
    assert "holds" not in rows["A01"]
    assert rows["A02"]["holds"]


@pytest.mark.parametrize("cells", [["good = learn(0.2) / 0\npoor = 1"], ["1 / 0", LESSON[3]]])
def test_an_error_other_than_a_divergence(tmp_path, cells) -> None:
    with pytest.raises(RuntimeError, match=r"A01: .*ZeroDivisionError"):
        perform(book_of(tmp_path, [*LESSON[:3], *cells, *LESSON[4:]]), "seed 0")


def test_an_optimizer_outside_of_the_training_loop(tmp_path) -> None:
    loop = "x = torch.rand(8, 1)\nfor _ in range(3):\n    optimizer.zero_grad()\n"
    loop += "    (model(x) - x).square().mean().backward()\n    optimizer.step()\n"
    own = f"model = torch.nn.Linear(1, 1)\noptimizer = torch.optim.SGD(model.parameters(), 0.1)\n{loop}"
    notebook = book_of(tmp_path, [*LESSON[:4], own, *LESSON[4:]])
    with pytest.raises(
        RuntimeError, match="line: an optimizer stepped outside of the training loop in cell 4"
    ):
        perform(notebook, "seed 0")
    assert set(perform(book_of(tmp_path, [*LESSON, own]), "seed 0")) == {"A01", "A02"}, "after the claims"


def test_a_run_without_the_cells_that_do_not_count(tmp_path) -> None:
    picture = cell_of("rate = 1 / 0", "hide-input")
    notebook = book_of(tmp_path, [*LESSON[:3], picture, *LESSON[3:]])
    assert perform(notebook, "seed 0") == perform(book_of(tmp_path), "seed 0")
    cells = [*LESSON[:3], picture, LESSON[3].replace("0.2", "rate"), *LESSON[4:]]
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        perform(book_of(tmp_path, cells), "seed 0")


@pytest.mark.parametrize(("says", "right"), [("n=n", True), ("n=good", False)])
def test_a_claim_tagged_untrained_that_depends_on_a_training(tmp_path, says, right) -> None:
    source = UNTRAINED.replace("n=n)", f"{says})").replace("n == 12", "n < 13")
    base = perform(book_of(tmp_path), "seed 0")["A01"]["values"]["good"]
    last = cell_of(LESSON[5])
    tagged = cell_of(source, "untrained", claim_id="A03", n=12 if right else base)
    notebook = book_of(tmp_path, [*LESSON[:5], tagged, last])
    assert [each.claim_id for each in notebook.tried] == ["A01", "A02"]
    assert perform(notebook, "seed 1")
    if right:
        assert perform(notebook, "3x rate")
    else:
        with pytest.raises(RuntimeError, match="A03 is tagged untrained, but another learning rate changes"):
            perform(notebook, "3x rate")


def test_records_run_by_run(tmp_path, monkeypatch) -> None:
    notebook, said, asked = book_of(tmp_path), [], []

    def in_new_process(function, path, run, ids, home):
        asked.append((run, ids))
        found, _ = record.perform(load(path), run, ids)
        return found, {"minutes": 0.5, "machine": "this one"}

    monkeypatch.setattr(record, "in_new_process", in_new_process)
    options = {"home": tmp_path, "say": said.append}
    assert record.record(notebook.path, runs=["seed 1", "seed 0"], **options) == 2
    kept = record.read_record("line", tmp_path)
    assert list(kept["runs"]) == ["seed 0", "seed 1"], "in the order of the list"
    assert kept["claims"]["A02"] == {"says": "Slowly {poor:.2f}.", "budget": True}
    assert record.record(notebook.path, runs=["seed 1"], **options) == 0
    assert record.record(notebook.path, only=["A01"], runs=["seed 2"], **options) == 1
    assert asked[-1] == ("seed 2", ["A01"])
    assert record.record(notebook.path, **options) == len(RUNS) - 2
    assert asked[2 + 1] == ("seed 2", ["A02"]), "what is there is not run again"
    assert record.record(notebook.path, **options) == 0
    assert record.record(notebook.path, only=["A02"], runs=["seed 0"], again=True, **options) == 1
    assert any("4x steps" in line and "A02" in line and "poor" in line for line in said)
    assert record.problems(notebook, tmp_path) == []
    other = book_of(tmp_path, [text.replace("n = 12", "n = 13") for text in LESSON])
    assert len(record.problems(other, tmp_path)) == 2 * len(RUNS), "other code"
    assert record.record(other.path, runs=["seed 0"], **options) == 1, "it is run anew"
    assert len(record.problems(other, tmp_path)) == 2 * len(RUNS) - 2, "and its figures are the new ones"
    assert str(tmp_path) not in Path(tmp_path, "line", "trials.json").read_text(encoding="utf-8")


def test_a_sentence_and_a_condition_without_a_run(tmp_path, monkeypatch) -> None:
    notebook = book_of(tmp_path)
    runs = {run: {"minutes": 1, "machine": "m", "claims": perform(notebook, run)} for run in RUNS}
    record.write_record("line", record.judged({"claims": {}, "runs": runs}, notebook), tmp_path)
    assert record.problems(notebook, tmp_path) == []
    stricter = LESSON[4].replace("< 3", "< 0.001").replace("It learns", "Found:")
    notebook = book_of(tmp_path, [*LESSON[:4], stricter, *LESSON[5:]])
    assert record.problems(notebook, tmp_path) == [
        "the record is of other claims, sentences or conditions: make trials NB=line"
    ]
    monkeypatch.setattr(record, "in_new_process", None)
    assert record.record(notebook.path, home=tmp_path, say=print) == 0
    kept = record.read_record("line", tmp_path)
    assert kept["claims"]["A01"] == {"says": "Found: {good:.2f}.", "budget": False}
    assert not any(run["claims"]["A01"]["holds"] for run in kept["runs"].values())
    assert all(run["claims"]["A02"]["holds"] for run in kept["runs"].values())
    assert "seed 0 refutes the claim" in record.problems(notebook, tmp_path)[0]


def test_values_of_other_code_are_not_judged_anew(tmp_path) -> None:
    notebook = book_of(tmp_path)
    runs = {"seed 0": {"minutes": 1, "machine": "m", "claims": perform(notebook, "seed 0")}}
    kept = record.judged({"claims": {}, "runs": runs}, notebook)
    stricter = [text.replace("n = 12", "n = 13").replace("< 3", "< 0.001") for text in LESSON]
    assert record.judged(kept, book_of(tmp_path, stricter))["runs"] == kept["runs"]


def test_a_run_in_a_process_of_its_own(tmp_path) -> None:
    path = book_of(tmp_path).path
    assert record.record(path, only=["A01"], runs=["seed 0"], home=tmp_path, say=lambda _: None) == 1
    run = record.read_record("line", tmp_path)["runs"]["seed 0"]
    assert run["claims"]["A01"]["holds"]
    assert run["seed"] == 0
    assert run["machine"].startswith(f"{platform.system()}, {platform.machine()}, Python 3.")
    assert run["machine"].endswith(f", torch {torch.__version__.split('+')[0]}")
    assert (platform.node() or "a name") not in run["machine"]


SWEEPS = """
from exformer_lessons.trials import sweep

@sweep("A01")
def curve(learn, n):
    return {"rates": [0.1, 0.3], "weights": [learn(rate) for rate in (0.1, 0.3)], "n": n}
"""


def test_a_sweep_of_names_of_the_lesson(tmp_path) -> None:
    notebook = book_of(tmp_path)
    path = tmp_path / "line" / "sweeps.py"
    path.parent.mkdir()

    def codes(text=SWEEPS, cells=LESSON):
        path.write_text(text, encoding="utf-8")
        return {each.name: each.code for each in record.sweeps(book_of(tmp_path, cells), tmp_path)}

    code = codes()["curve"]
    figures, _ = record.perform_sweep(notebook, "curve", tmp_path)
    assert figures["n"] == 12
    assert figures["weights"][0] != figures["weights"][1]
    assert codes(SWEEPS.replace("0.3", "0.4"))["curve"] != code
    assert codes(SWEEPS + "# a comment")["curve"] == code
    other = SWEEPS.split("\n\n")[1].replace("curve", "other").replace('"n": n', '"n": STEPS')
    assert codes(f"{SWEEPS}\n\n{other}")["curve"] == code, "a sweep does not depend on another one"
    assert codes(f"{SWEEPS}\nSTEPS = 5\n")["curve"] != code, "but on all else in the file"
    assert codes(cells=[text.replace("2 * x", "3 * x") for text in LESSON])["curve"] != code
    assert codes(cells=[text.replace("learn(0.2)", "learn(0.3)") for text in LESSON])["curve"] == code
    assert record.sweeps(load(notebook.path, "other"), tmp_path) == []


def test_a_sweep_of_names_of_a_part_that_states_no_claim(tmp_path) -> None:
    last = ["from random import Random\nfrom exformer_lessons.setup import start\nstart(seed=0)", "m = 5"]
    notebook = book_of(tmp_path, [*LESSON, *last])
    (tmp_path / "line").mkdir()
    text = SWEEPS.split("\n@")[0] + '\n@sweep("A01")\ndef five(m):\n    return m\n'
    (tmp_path / "line" / "sweeps.py").write_text(text, encoding="utf-8")
    assert record.perform_sweep(notebook, "five", tmp_path)[0] == 5


def test_the_command_records_what_is_named(monkeypatch, capsys) -> None:
    asked = []
    monkeypatch.setattr(record, "record", lambda path, **how: asked.append((key_of(path), how)))
    monkeypatch.setattr(record, "problems", lambda notebook: ["A01: …"] * ("tokens" in notebook.key))
    words = ["--only", "A01", "B01", "--runs", "seed 1", "rate/3", "--again"]
    assert command(["trials", "evidence/generation", *words]) == 0
    assert capsys.readouterr().out == "every claim that depends on a training is recorded, and holds\n"
    assert command(["trials", "evidence/tokens"]) == 1
    assert capsys.readouterr().out == "evidence/tokens, A01: …\n"
    how = {"only": ["A01", "B01"], "runs": ["seed 1", "rate/3"], "again": True}
    none = {"only": [], "runs": [], "again": False}
    assert asked == [("evidence/generation", how), ("evidence/tokens", none)]


# --- Its record ---


def row(value=0.9, *, code="c", holds=True, steps=10, losses=(1.0,)):
    return {"code": code, "holds": holds, "values": {"share": value}, "steps": steps, "losses": list(losses)}


def recorded(budget=False, **changes):
    """Return a trial in which all is well, but for some changes."""
    runs = {run: row(0.9 + number / 100, losses=[number]) for number, run in enumerate(RUNS)}
    runs["4x steps"]["steps"] = 40
    runs |= {name.replace("_", " "): change for name, change in changes.items()}
    runs = {name: {"minutes": 0.5, "machine": "m"} | each for name, each in runs.items() if each}
    return Trial("A01", "line", "The share is {share:.0%}.", budget, runs)


def test_no_complaint_of_a_good_trial() -> None:
    assert complaints(recorded(), "c") == []


def test_five_digits_of_losses_near_zero() -> None:
    assert [record._last([loss]) for loss in (2.137712, 0.0013412, 0.0013388)] == [
        2.1377,
        0.0013412,
        0.0013388,
    ]


def test_the_last_tenth_is_at_least_one_loss() -> None:
    assert [record._last([9.0] * n + [3.0, 1.0]) for n in (0, 7, 17, 18)] == [1.0, 1.0, 1.0, 2.0]


def test_equal_rounded_losses_of_different_values() -> None:
    assert complaints(recorded(seed_3=row(0.987, losses=[2])), "c") == []


NO = row(0.1, holds=False, losses=[9])


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"seed_3": None}, "seed 3 is not recorded"),
        ({"seed_3": row(code="d", losses=[9])}, "seed 3 was recorded with other code"),
        ({"seed_3": NO}, "seed 3 refutes the claim: {'share': 0.1}"),
        ({"another_order": NO}, "another order refutes the claim"),
        ({"rate/3": NO}, "rate/3 refutes the claim"),
        ({"3x_rate": NO}, "3x rate refutes the claim"),
        ({"4x_steps": NO | {"steps": 40}}, "4x steps refutes the claim"),
        ({"4x_steps": row(steps=10, losses=[9])}, "10 steps are not four times 10"),
        ({"4x_steps": row(steps=50, losses=[9])}, "50 steps are not four times 10"),
        ({"seed_3": row(0.92, losses=[2])}, "two seeds gave the same losses"),
        ({"another_order": row(losses=[0])}, "another order gave the same losses as seed 0"),
        ({"3x_rate": row(losses=[0])}, "3x rate gave the same losses"),
        ({"seed_0": {"code": "c", "diverged": "nan", "losses": [9], "steps": 2}}, "seed 0 diverged"),
    ],
)
def test_complaints_of_missing_foreign_and_refuting_runs(changes, wrong) -> None:
    found = complaints(recorded(**changes), "c")
    assert len(found) == 1
    assert found[0].startswith(wrong)


def test_the_excuse_of_a_budget() -> None:
    longer = NO | {"steps": 40}
    assert complaints(recorded(budget=True, **{"4x_steps": longer}), "c") == []
    assert complaints(recorded(budget=True, **{"4x_steps": row(steps=10, losses=[9])}), "c") != []
    assert complaints(recorded(budget=True, **{"3x_rate": NO}), "c") != []


def test_no_verdict_of_a_diverged_run() -> None:
    diverged = {"code": "c", "diverged": "the loss is nan", "steps": 3, "losses": []}
    for run in ("3x_rate", "seed_2", "4x_steps"):
        assert complaints(recorded(**{run: diverged}), "c") == []
    assert "diverged" in repr(recorded(**{"3x_rate": diverged}))


def test_the_table_of_a_trial() -> None:
    found = recorded(budget=True, **{"4x_steps": NO | {"steps": 40}})
    assert found.rows() == [
        ["value", "5 seeds", "4× the steps", "rate ÷ 3", "rate × 3", "other batch order"],
        ["share", "92% (90–94%)", "10%", "96%", "97%", "98%"],
        ["holds", "5 of 5", "no (need not)", *(["yes"] * 3)],
    ]
    lines = repr(found).splitlines()
    assert lines[1].split() == ["share", "92%", "(90–94%)", "10%", "96%", "97%", "98%"]
    where = "Recorded: 9 runs, 4 minutes on m; of the seeds, the mean and the range."
    beyond = "The claim is about no more training than it names; with 4× the steps it need not hold."
    assert lines[3] == f"{where} {beyond} To repeat: make trials NB=line"
    assert recorded().footer == f"{where} To repeat: make trials NB=line"
    holds_beyond = recorded(budget=True)  # with 4× the steps, too: nothing is to be excused
    assert holds_beyond.rows()[-1] == ["holds", "5 of 5", *(["yes"] * 4)]
    assert holds_beyond.footer == recorded().footer
    html = found._repr_html_()
    assert html.count("<tr>") == 3
    assert "<td>share</td><td>92% (90–94%)</td><td>10%</td>" in html
    less = recorded(seed_1={"code": "c", "diverged": "nan", "losses": []}, seed_2=NO)
    assert less.rows()[-1][1] == "3 of 5, 1 diverged"
    assert less.rows()[1][1] == "72% (10–94%)"


def test_names_of_values_in_a_table() -> None:
    found = recorded()
    named = found.named(share="words right")
    assert [row[0] for row in named.rows()] == ["value", "words right", "holds"]
    assert named.rows()[1][1:] == found.rows()[1][1:]
    assert "<td>words right</td>" in named._repr_html_()
    assert found.rows()[1][0] == "share"
    with pytest.raises(ValueError, match="no value 'shape' is recorded, there are: share"):
        found.named(shape="words right")


def test_no_row_for_words_that_never_change() -> None:
    for values, wanted in ((["none", "none"], 0), (["none", "some"], 1), (["nan", "nan"], 1), ([1, 1], 1)):
        runs = {f"seed {n}": row(value) for n, value in enumerate(values)}
        names = [each[0] for each in Trial("A01", "line", "{share}", runs=runs).rows()]
        assert names.count("share") == wanted, values


def test_rows_that_a_table_leaves_out() -> None:
    found = recorded()
    assert [row[0] for row in found.without("share").rows()] == ["value", "holds"]
    assert [row[0] for row in found.rows()] == ["value", "share", "holds"]
    assert found.without("share").without("share").hidden == (
        "share",
        "share",
    )  # the second adds to the first
    with pytest.raises(ValueError, match="no value 'shape' is recorded, there are: share"):
        found.without("shape")


@pytest.mark.parametrize(
    ("says", "values", "wanted"),
    [
        ("{share:.1f}", [1.0, 2.0, 3.0], "2.0 (1.0 to 3.0)"),
        ("{share:.0%}", [0.5, 0.5001], "50%"),
        ("{share:.0%}", [0.5, 0.7], "60% (50–70%)"),
        ("{share}", [1, 2], "1.5 (1 to 2)"),
        ("{share}", ["a word"], "–"),
        ("{share:.1f}", ["nan", 2.0], "2.0"),
    ],
)
def test_mean_and_range_in_words(says, values, wanted) -> None:
    runs = {f"seed {n}": row(value) for n, value in enumerate(values)}
    assert Trial("A01", "line", says, runs=runs).over_seeds("share") == wanted


@pytest.mark.parametrize(
    ("minutes", "time"), [(0.25, "30 seconds"), (0.75, "90 seconds"), (0.8, "2 minutes")]
)
def test_minutes_and_machines_in_the_footer(minutes, time) -> None:
    runs = {f"seed {n}": row() | {"minutes": minutes, "machine": m} for n, m in enumerate("ba")}
    found = Trial("A01", "line", "{share}", runs=runs)
    assert found.minutes == 2 * minutes
    assert f"Recorded: 2 runs, {time} on a; b; of the seeds" in found.footer
    several = Trial("A01", "line", "{share}", runs={**runs, "seed 2": runs["seed 0"] | {"machine": "<b"}})
    assert " on &lt;b; a; b; of" in several._repr_html_()


def test_records_in_the_folders_of_lessons(tmp_path, monkeypatch) -> None:
    kept = {
        "claims": {"A01": {"says": "{share:.0%}", "budget": False}},
        "runs": {"seed 0": {"seed": 0, "minutes": 1.0, "machine": "m", "claims": {"A01": row()}}},
        "sweeps": {"A01": {"curve": {"code": "c", "figures": {"x": [1, 2]}}}},
    }
    record.write_record("evidence/line", kept, tmp_path)
    monkeypatch.setattr(trials, "HOME", tmp_path)
    assert trial("A01").over_seeds("share") == "90%"
    assert trial("A01").command == "make trials NB=evidence/line"
    assert trial("A01", "curve") == {"x": [1, 2]}
    assert trial("A01", of="evidence/line").runs
    assert not trial("A01", of="line").runs
    assert repr(trial("A02")) == "Claim A02: nothing is recorded yet: make trials NB=the lesson"
    assert "<table>" not in trial("A02")._repr_html_()
    with pytest.raises(ValueError, match="sweep 'other' of claim A01 is not recorded: make trials"):
        trial("A01", "other")


# --- The book's own claims ---


@pytest.mark.parametrize("path", paths(), ids=key_of)
def test_the_trials_of_a_notebook(path: Path) -> None:
    assert record.problems(load(path)) == []


def test_a_notebook_of_each_record() -> None:
    found = [*trials.HOME.rglob("trials.json"), *trials.HOME.rglob("sweeps.py")]
    keys = {"/".join(reversed(path.relative_to(trials.HOME).parts[:-1])) for path in found}
    assert keys <= {key_of(path) for path in paths()}


def test_a_record_that_does_not_fit_its_lesson(tmp_path) -> None:
    cell = cell_of(LESSON[4], claim_id="A01", good=0.9)
    notebook = book_of(tmp_path, [*LESSON[:4], cell])
    code = notebook.codes["A01"]

    def wrong(good=0.9, **changes):
        runs = {}
        for number, run in enumerate(RUNS):
            found = row(code=code, losses=[number], steps=40 if run == "4x steps" else 10)
            found["values"] = {"good": good}
            runs[run] = {"minutes": 1, "machine": "m", "claims": {"A01": found}}
        claims = {"A01": {"says": "It learns {good:.2f}.", "budget": False}}
        record.write_record("line", {"claims": claims, "runs": runs} | changes, tmp_path)
        return record.problems(notebook, tmp_path)

    assert wrong() == wrong(good=0.904) == []
    assert "the lesson found others" in wrong(good=0.91)[0]
    of_others = "the record is of other claims, sentences or conditions: make trials NB=line"
    assert wrong(claims={"A01": {"says": "x", "budget": False}}) == [of_others]
    assert wrong(claims={}, runs={}) == [of_others]
    assert wrong(claims={"A01": {"says": "It learns {good:.2f}.", "budget": False}, "B01": {}}) == [of_others]
    Path(tmp_path, "line", "sweeps.py").write_text(SWEEPS, encoding="utf-8")
    (curve,) = record.sweeps(notebook, tmp_path)
    assert "the sweep curve is missing or stale" in wrong()[0]
    assert wrong(sweeps={"A01": {"curve": {"code": curve.code, "figures": 1}}}) == []
