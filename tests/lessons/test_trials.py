"""Claims that depend on a training are tried with other seeds, steps, rates and orders."""

import json
import platform
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from exformer.training.config import TrainingConfig
from exformer.training.loop import DivergenceError, train
from exformer.training.trainer import Trainer
from exformer.training.variation import Variation, varied_training, vary_run
from exformer_lessons import trials
from exformer_lessons.trials import HOME, RUNS, Trial, complaints, read_trial, trial

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book" / "_tools"))

import lesson_code  # noqa: E402
import restamp  # noqa: E402
import run_trials  # noqa: E402
from tolerances import read_tags, same_claim  # noqa: E402

# --- The training loop ---


class Line(nn.Module):
    """One number that starts at 0."""

    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(torch.zeros(()))


def trace(batches, *, lr=1.0, schedule=None, **variation):
    """Train with a loss whose gradient is the batch; return the batches in their order and the rates used."""
    model, seen, rates = Line(), [], []
    optimizer = torch.optim.SGD(model.parameters(), lr)

    def loss_fn(model, batch):
        seen.append(batch)
        rates.append(optimizer.param_groups[0]["lr"])
        return batch * model.a

    if variation:
        with varied_training(Variation(**variation)) as notes:
            train(model, batches, loss_fn=loss_fn, optimizer=optimizer, schedule=schedule)
        assert [(note.optimizer_steps, len(note.losses)) for note in notes] == [(len(seen), len(seen))]
    else:
        train(model, batches, loss_fn=loss_fn, optimizer=optimizer, schedule=schedule)
    assert optimizer.param_groups[0]["lr"] == (rates[-1] if schedule else lr), "the rate is put back"
    return seen, rates


def test_without_a_context_nothing_is_varied() -> None:
    assert trace([1, 2, 3]) == ([1, 2, 3], [1.0] * 3)
    with varied_training(Variation(steps=2)):
        pass
    assert trace([1, 2, 3]) == ([1, 2, 3], [1.0] * 3)
    assert trace([1, 2, 3], steps=1) == ([1, 2, 3], [1.0] * 3)


@pytest.mark.parametrize("make", [list, iter, lambda batches: (each for each in batches)])
def test_more_steps_walk_through_the_batches_again_in_other_orders(make) -> None:
    batches = list(range(8))
    seen, rates = trace(make(batches), steps=4)
    turns = [seen[at : at + 8] for at in range(0, 32, 8)]
    assert len(seen) == 32
    assert turns[0] == batches
    assert all(sorted(turn) == batches for turn in turns)
    assert len(set(map(tuple, turns))) == 4
    assert rates == [1.0] * 32


def test_an_iterator_is_walked_through_as_often_as_twice() -> None:
    seen, _ = trace(iter([1, 2, 3]), steps=2)
    assert (seen[:3], sorted(seen[3:])) == ([1, 2, 3], [1, 2, 3])


def test_after_an_inner_variation_the_outer_one_holds_again() -> None:
    with varied_training(Variation(rate=2.0)) as notes:
        assert trace([1], rate=4.0)[1] == [4.0]
        assert trace([1])[1] == [2.0]
    assert len(notes) == 1


def test_batches_that_are_drawn_anew_are_new() -> None:
    class Drawn:
        def __init__(self):
            self.count = 0

        def __iter__(self):
            for _ in range(3):
                self.count += 1
                yield self.count

    seen, _ = trace(Drawn(), steps=2)
    assert sorted(seen) == [1, 2, 3, 4, 5, 6]


def test_a_schedule_is_stretched_and_multiplied() -> None:
    _, rates = trace([1, 2], schedule=lambda step: {1: 0.5, 2: 0.25}[step], steps=3, rate=2.0)
    assert rates == [1.0] * 3 + [0.5] * 3
    assert trace([1, 2], lr=0.1, rate=3.0)[1] == pytest.approx([0.3, 0.3])


def test_another_order_has_the_same_batches() -> None:
    batches = list(range(10))
    one, two = trace(batches, order=1)[0], trace(batches, order=2)[0]
    assert sorted(one) == sorted(two) == batches
    assert len({tuple(batches), tuple(one), tuple(two)}) == 3
    assert one == trace(batches, order=1)[0]


def test_no_two_orders_share_one_of_their_turns() -> None:
    batches = list(range(8))
    seen = trace(batches, order=1, steps=2)[0] + trace(batches, order=2, steps=2)[0]
    assert len({tuple(seen[at : at + 8]) for at in range(0, 32, 8)}) == 4


def test_the_rates_of_all_groups_are_varied_and_put_back_even_after_a_failure() -> None:
    one, two = nn.Parameter(torch.zeros(())), nn.Parameter(torch.zeros(()))
    optimizer = torch.optim.SGD([{"params": [one], "lr": 0.5}, {"params": [two], "lr": 0.25}])
    rates = []

    def loss_fn(model, batch):
        rates.append([group["lr"] for group in optimizer.param_groups])
        raise KeyboardInterrupt

    with varied_training(Variation(rate=4.0)), pytest.raises(KeyboardInterrupt):
        train(nn.ParameterList([one, two]), [1], loss_fn=loss_fn, optimizer=optimizer)
    assert rates == [[2.0, 1.0]]
    assert [group["lr"] for group in optimizer.param_groups] == [0.5, 0.25]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"steps": 0}, "steps must be at least 1, got 0"),
        ({"order": -1}, "order must be at least 0, got -1"),
        ({"rate": 0.0}, "rate must be above 0 and finite, got 0.0"),
        ({"rate": float("nan")}, "rate must be above 0 and finite, got nan"),
        ({"rate": float("inf")}, "rate must be above 0 and finite, got inf"),
    ],
)
def test_a_variation_that_no_training_can_follow_is_refused(wrong, message) -> None:
    with pytest.raises(ValueError, match=message):
        Variation(**wrong)


def fitted(batches, **variation):
    model, seen = Line(), []
    config = TrainingConfig(steps=4, lr=0.1, warmup=2, eval_interval=2, lr_by_module={}, clip_norm=None)

    def loss_fn(model, batch):
        seen.append(batch)
        return batch * model.a

    with varied_training(Variation(**variation)) as notes:
        trainer = Trainer(model, batches, config=config, loss_fn=loss_fn)
        trainer.fit()
    return seen, trainer.config, notes


def test_a_trainer_is_varied_too() -> None:
    assert fitted([1, 2, 3])[0] == [1, 2, 3, 1]
    seen, config, notes = fitted([1, 2, 3], steps=3, rate=2.0)
    assert len(seen) == notes[0].optimizer_steps == 12
    assert (config.steps, config.warmup, config.eval_interval) == (12, 6, 6)
    assert (config.lr, config.muon_lr) == (0.2, 0.04)
    seen, _, _ = fitted(list(range(20)), order=1)
    assert seen != [0, 1, 2, 3]
    seen, _, _ = fitted([1, 2, 3], order=1)
    assert (sorted(seen[:3]), seen[3]) == ([1, 2, 3], seen[0])  # the list in its new order, again and again
    with varied_training(Variation(rate=2.0)):
        assert vary_run(TrainingConfig(lr_by_module={"output": 0.5}), [])[0].lr_by_module == {"output": 1.0}


def test_a_trainers_sampler_gets_another_seed() -> None:
    from exformer.data.windows import TextWindows

    windows = TextWindows(torch.arange(30), width=4, batch_size=2, seed=5)
    with varied_training(Variation(order=1)):
        assert vary_run(TrainingConfig(), windows)[1].seed == 6

    class Sampler:
        def steps(self, *, start_step=0): ...
        def batch(self, rows): ...
        def n_targets(self, rows): ...

    with varied_training(Variation(order=1)), pytest.raises(ValueError, match="expected batches with a seed"):
        vary_run(TrainingConfig(), Sampler())


def test_divergence_has_its_own_error() -> None:
    model = Line()
    optimizer = torch.optim.SGD(model.parameters(), 1.0)
    with pytest.raises(DivergenceError, match="the loss is nan at step 1"):
        train(model, [1.0], loss_fn=lambda m, x: m.a * float("nan"), optimizer=optimizer)


# --- A lesson that is tried ---

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
    'claim("A03", holds=lambda n: n == 12, says="{n}", n=n)',
]


def book_of(folder, cells=LESSON):
    """Write a book of one lesson."""
    cells = [
        {"cell_type": "code", "metadata": {}, "source": source, "outputs": []}
        if isinstance(source, str)
        else source
        for source in cells
    ]
    path = Path(folder, "notebooks", "line.ipynb")
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"cells": cells}), encoding="utf-8")
    Path(folder, "lib", "exformer_lessons", "line").mkdir(parents=True, exist_ok=True)
    return lesson_code.load(path)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Give a folder; put back the settings that a lesson makes."""
    threads, exact = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(exact)
    torch.set_printoptions(profile="default")


def perform(lesson, run):
    return run_trials.perform(lesson, run, run_trials.tried(lesson))[0]


def test_only_claims_that_depend_on_a_training_are_tried(tmp_path) -> None:
    assert [each.claim_id for each in run_trials.tried(book_of(tmp_path))] == ["A01", "A02"]


def test_runs_differ_in_what_they_are_named_for(here) -> None:
    lesson = book_of(here)
    rows = {run: perform(lesson, run)["A01"] for run in RUNS}
    base = rows["seed 0"]
    assert base == rows["seed 0"] | {"code": lesson.fingerprint(lesson.claims[0])}
    assert base["steps"] == 24
    assert rows["4x steps"]["steps"] == 96
    values = [row["values"]["good"] for row in rows.values()]
    assert len(set(values)) == len(RUNS)
    assert abs(rows["4x steps"]["values"]["good"] - 2) < abs(base["values"]["good"] - 2)
    assert abs(rows["rate/3"]["values"]["good"] - 2) > abs(base["values"]["good"] - 2)
    assert perform(lesson, "seed 0")["A01"] == base, "a run can be repeated"


def test_what_diverges_is_recorded_and_other_claims_go_on(here) -> None:
    cells = [*LESSON[:3], "good = learn(float('inf'))", "poor = learn(0.01)", *LESSON[4:]]
    rows = perform(book_of(here, cells), "seed 0")
    assert rows["A01"]["diverged"].startswith("the loss is")
    assert "holds" not in rows["A01"]
    assert rows["A02"]["holds"]


def test_an_error_that_is_no_divergence_stops_the_trial(here) -> None:
    cells = [*LESSON[:3], "good = learn(0.2) / 0\npoor = 1", *LESSON[4:]]
    with pytest.raises(RuntimeError, match=r"A01: .*ZeroDivisionError"):
        perform(book_of(here, cells), "seed 0")


def test_an_error_that_no_claim_depends_on_stops_the_trial_too(here) -> None:
    with pytest.raises(RuntimeError, match=r"A01: .*ZeroDivisionError"):
        perform(book_of(here, [*LESSON[:3], "1 / 0", *LESSON[3:]]), "seed 0")


def test_a_training_by_another_way_is_refused(here) -> None:
    loop = "x = torch.rand(8, 1)\nfor _ in range(3):\n    optimizer.zero_grad()\n"
    loop += "    (model(x) - x).square().mean().backward()\n    optimizer.step()\n"
    own = f"model = torch.nn.Linear(1, 1)\noptimizer = torch.optim.SGD(model.parameters(), 0.1)\n{loop}"
    claim = 'claim("A04", holds=lambda a: a < 9, says="{a:.1f}", a=model.weight.item())'
    lesson = book_of(here, [*LESSON, own, claim])
    with pytest.raises(
        RuntimeError, match="A04: an optimizer stepped outside of the training loop in cell 7"
    ):
        perform(lesson, "seed 0")
    apart = book_of(here, [*LESSON[:4], own, *LESSON[4:]])
    assert set(perform(apart, "seed 0")) == {"A01", "A02"}, "no claim depends on it"


def test_random_numbers_that_the_hash_knows_nothing_of_are_refused(here) -> None:
    hidden = 'getattr(torch, "rand")(1)'
    with pytest.raises(RuntimeError, match=r"A01: cell 3, line 1 draws random numbers and moves those of"):
        perform(book_of(here, [*LESSON[:3], hidden, *LESSON[3:]]), "seed 0")
    start = "from exformer.training.loop import set_seed\nset_seed(0)"
    assert perform(book_of(here, [*LESSON[:3], hidden, start, *LESSON[3:]]), "seed 0")["A01"]["holds"]
    assert perform(book_of(here, [*LESSON[:3], "torch.rand(1)", *LESSON[3:]]), "seed 0")["A01"]["holds"]


def test_only_hashes_that_were_right_are_replaced() -> None:
    def rows(*codes):
        return {f"seed {n}": {"claims": {"A01": {"code": code}}} for n, code in enumerate(codes)}

    record = {
        "runs": rows("old", "foreign"),
        "sweeps": {"A01": {"curve": {"code": "s"}, "more": {"code": "t"}}},
    }
    old = {"claims": {"A01": "old"}, "sweeps": {"A01 curve": "s", "A01 more": "u"}}
    new = {"claims": {"A01": "new"}, "sweeps": {"A01 curve": "S", "A01 more": "U"}}
    assert restamp.stamp(record, old, new) == (2, ["A01, seed 1", "A01, sweep more"])
    assert record["runs"] == rows("new", "foreign")
    assert record["sweeps"]["A01"] == {"curve": {"code": "S"}, "more": {"code": "t"}}
    gone = {"claims": {}, "sweeps": new["sweeps"]}
    assert restamp.stamp({"runs": rows("old")}, old, gone) == (0, ["A01, seed 0"])


OLD_CLAIM = LESSON[4]
ASKED_ANEW = OLD_CLAIM.replace("< 3", "< 0.001").replace("It learns", "Found:")


def recorded_line(here):
    """Return a lesson's record of two runs, and the lesson."""
    lesson = book_of(here)
    runs = {run: {"claims": perform(lesson, run)} for run in ("seed 0", "rate/3")}
    claims = {each.claim_id: {"says": each.says, "budget": each.budget} for each in run_trials.tried(lesson)}
    return {"claims": claims, "runs": runs}, lesson


def test_a_sentence_is_put_into_a_record_without_a_run(here) -> None:
    record, _ = recorded_line(here)
    runs = json.dumps(record["runs"])
    lesson = book_of(here, [text.replace("It learns", "Found:") for text in LESSON])
    assert restamp.reword(record, lesson) == (["A01", "A02"], [])
    assert record["claims"]["A01"]["says"] == "Found: {good:.2f}."
    assert json.dumps(record["runs"]) == runs


def test_a_condition_is_judged_on_the_recorded_figures(here) -> None:
    record, old = recorded_line(here)
    codes = {each.claim_id: old.fingerprint(each) for each in run_trials.tried(old)}
    lesson = book_of(here, [*LESSON[:4], ASKED_ANEW, *LESSON[5:]])
    claim, before = lesson.claims[0], json.dumps(record)
    assert restamp.reword(record, lesson) == (["A02"], ["A01"]), "the hash alone does not prove it"
    assert json.dumps(record) == before
    old = book_of(here)
    assert restamp.reword(record, lesson, old, codes) == (["A01", "A02"], [])
    for run in record["runs"].values():
        assert run["claims"]["A01"]["code"] == lesson.fingerprint(claim) != codes["A01"]
        assert not run["claims"]["A01"]["holds"], "the narrower condition is not met"
    assert record["claims"]["A01"] == {"says": "Found: {good:.2f}.", "budget": False}


@pytest.mark.parametrize(
    ("part", "new"),
    [
        ("2 * x", "3 * x"),  # the training
        ("learn(0.2)", "learn(0.3)"),  # its rate
        ("good=good", "good=poor"),  # what is measured
        ("n = 12", "n = 13"),
        ("good=good)", "good=good, n=n)"),  # a value that no run recorded
    ],
)
def test_no_condition_makes_a_record_of_other_code_valid(here, part, new) -> None:
    record, old = recorded_line(here)
    codes = {each.claim_id: old.fingerprint(each) for each in run_trials.tried(old)}
    cells = [text.replace(part, new) for text in [*LESSON[:4], ASKED_ANEW, *LESSON[5:]]]
    lesson, before = book_of(here, cells), json.dumps(record["runs"]["seed 0"]["claims"]["A01"])
    _, foreign = restamp.reword(record, lesson, old, codes)
    assert "A01" in foreign
    assert record["claims"]["A01"]["says"] == "It learns {good:.2f}."
    assert json.dumps(record["runs"]["seed 0"]["claims"]["A01"]) == before
    record["runs"]["rate/3"]["claims"]["A01"]["code"] = "foreign"
    same = book_of(here, [*LESSON[:4], ASKED_ANEW, *LESSON[5:]])
    assert "A01" in restamp.reword(record, same, old, codes)[1], "one run of other code is enough"


def test_what_is_no_number_meets_no_condition(here) -> None:
    claim = book_of(here).claims[0]
    assert restamp.judge(claim, {"good": 2.5})
    cells = [*LESSON[:4], OLD_CLAIM.replace("abs(good - 2) < 3", "good != 2"), *LESSON[5:]]
    assert not restamp.judge(book_of(here, cells).claims[0], {"good": "nan"})


def test_the_results_of_sabotages_are_judged_too(here) -> None:
    def results(**changes):
        row = {"says": "old", "normally": {"good": 2.1}, "sabotaged": {"good": 9.0}, "refused": True}
        return {"A01": row | changes}

    lesson, found = book_of(here), results()
    assert restamp.reword_doubts(found, lesson) == []
    assert found == results(says="It learns {good:.2f}.")
    found = results(sabotaged={"good": 2.2})
    assert restamp.reword_doubts(found, lesson) == ["A01"], "the condition accepts its sabotage"
    assert not found["A01"]["refused"]
    assert restamp.reword_doubts(found := results(sabotaged={}), lesson) == ["A01"]
    assert found == results(sabotaged={})
    more = results(normally={"good": 2.1, "n": 3}, sabotaged={"good": 9.0, "n": 3})
    assert restamp.reword_doubts(more, lesson) == []
    assert more == results(says="It learns {good:.2f}."), "a value that is no longer asked for"


def test_records_are_written_run_by_run_and_taken_up_again(here, monkeypatch) -> None:
    lesson, said, asked = book_of(here), [], []

    def apart(script, request, *, limit_s):
        asked.append((request["run"], request["claims"]))
        claims = [each for each in run_trials.tried(lesson) if each.claim_id in request["claims"]]
        found, _ = run_trials.perform(lesson, request["run"], claims)
        return {"found": found, "minutes": 0.5, "machine": "this one"}

    monkeypatch.setattr(run_trials.lesson_runs, "apart", apart)
    options = {"root": here, "say": lambda text, **_: said.append(text)}
    assert run_trials.run_all("line", runs=["seed 1", "seed 0"], **options) == 2
    record = run_trials.read_record("line", here)
    assert list(record["runs"]) == ["seed 0", "seed 1"], "in the order of the list"
    assert record["claims"]["A02"] == {"says": "Slowly {poor:.2f}.", "budget": True}
    assert run_trials.run_all("line", runs=["seed 1"], **options) == 0
    assert run_trials.run_all("line", only=["A01"], runs=["seed 2"], **options) == 1
    assert asked[-1] == ("seed 2", ["A01"])
    assert run_trials.run_all("line", **options) == len(RUNS) - 2
    assert asked[2 + 1] == ("seed 2", ["A02"]), "what is there is not run again"
    assert run_trials.run_all("line", **options) == 0
    assert run_trials.run_all("line", only=["A02"], runs=["seed 0"], again=True, **options) == 1
    assert any("4x steps" in line and "A02" in line and "poor" in line for line in said)

    record = run_trials.read_record("line", here)
    for claim in run_trials.tried(lesson):
        found = read_trial("line", record, claim.claim_id)
        assert complaints(found, lesson.fingerprint(claim)) == []
    lesson = book_of(here, [text.replace("n = 12", "n = 13") for text in LESSON])
    assert run_trials.run_all("line", runs=["seed 0"], **options) == 1, "other code is run anew"
    assert str(here) not in run_trials.record_path("line", here).read_text(encoding="utf-8")


def test_a_run_is_a_process_of_its_own(here) -> None:
    book_of(here)
    assert (
        run_trials.run_all("line", only=["A01"], runs=["seed 0"], root=here, say=lambda *_, **__: None) == 1
    )
    run = run_trials.read_record("line", here)["runs"]["seed 0"]
    assert run["claims"]["A01"]["holds"]
    assert run["seed"] == 0
    assert f"torch {torch.__version__.split('+')[0]}" in run["machine"]
    assert (platform.node() or "a name") not in run["machine"]


SWEEPS = """
from exformer_lessons.trials import sweep

@sweep("A01")
def curve(learn, n):
    return {"rates": [0.1, 0.3], "weights": [learn(rate) for rate in (0.1, 0.3)], "n": n}
"""


def test_a_sweep_is_given_names_of_the_lesson(here) -> None:
    lesson = book_of(here)
    path = here / "lib" / "exformer_lessons" / "line" / "sweeps.py"
    path.write_text(SWEEPS, encoding="utf-8")
    ((claim_id, name, function, code),) = run_trials.sweeps("line", here)
    assert (claim_id, name) == ("A01", "curve")
    figures, _ = run_trials.perform_sweep(lesson, function)
    assert figures["n"] == 12
    assert figures["weights"][0] != figures["weights"][1]
    path.write_text(SWEEPS.replace("0.3", "0.4"), encoding="utf-8")
    assert run_trials.sweeps("line", here)[0][3] != code
    path.write_text(SWEEPS + "# a comment", encoding="utf-8")
    assert run_trials.sweeps("line", here)[0][3] == code
    other = SWEEPS.split("\n\n")[1].replace("curve", "other").replace('"n": n', '"n": STEPS')
    more = f"{SWEEPS}\nSTEPS = 5\n\n{other}"
    path.write_text(more, encoding="utf-8")
    (_, _, _, first), (_, name, _, second) = run_trials.sweeps("line", here)
    assert (first, name) == (code, "other"), "a sweep does not depend on another one"
    path.write_text(more.replace("STEPS = 5", "STEPS = 6"), encoding="utf-8")
    codes = [code for *_, code in run_trials.sweeps("line", here)]
    assert codes[0] == first
    assert codes[1] != second, "a sweep depends on what it reads"
    path.write_text(SWEEPS, encoding="utf-8")
    book_of(here, [text.replace("2 * x", "3 * x") for text in LESSON])
    assert run_trials.sweeps("line", here)[0][3] != code
    assert run_trials.sweeps("other", here) == []


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


def test_a_trial_in_which_all_is_well() -> None:
    assert complaints(recorded(), "c") == []


def test_losses_near_zero_are_recorded_with_as_many_digits() -> None:
    assert [run_trials._five_digits(loss) for loss in (2.137712, 0.0013412, 0.0013388)] == [
        2.1377,
        0.0013412,
        0.0013388,
    ]


def test_losses_that_agree_once_rounded_are_of_two_runs_where_the_values_differ() -> None:
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
def test_a_missing_foreign_or_refuting_run_is_found(changes, wrong) -> None:
    found = complaints(recorded(**changes), "c")
    assert len(found) == 1
    assert found[0].startswith(wrong)


def test_a_budget_excuses_four_times_the_steps_and_nothing_else() -> None:
    longer = NO | {"steps": 40}
    assert complaints(recorded(budget=True, **{"4x_steps": longer}), "c") == []
    assert complaints(recorded(budget=True, **{"4x_steps": row(steps=10, losses=[9])}), "c") != []
    assert complaints(recorded(budget=True, **{"3x_rate": NO}), "c") != []


def test_a_run_that_diverged_is_not_judged() -> None:
    diverged = {"code": "c", "diverged": "the loss is nan", "steps": 3, "losses": []}
    for run in ("3x_rate", "seed_2", "4x_steps"):
        assert complaints(recorded(**{run: diverged}), "c") == []
    assert "diverged" in repr(recorded(**{"3x_rate": diverged}))


def test_a_trial_is_shown_as_a_table() -> None:
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
    assert found.mean("share") == pytest.approx(0.92)
    assert found.values("share") == pytest.approx([0.9, 0.91, 0.92, 0.93, 0.94])
    with pytest.raises(ValueError, match="no value 'shape' is recorded, there are: share"):
        found.values("shape")


def test_a_table_calls_its_values_by_the_names_that_the_lesson_uses() -> None:
    found = recorded()
    named = found.named(share="words right")
    assert [row[0] for row in named.rows()] == ["value", "words right", "holds"]
    assert named.rows()[1][1:] == found.rows()[1][1:]
    assert "<td>words right</td>" in named._repr_html_()
    assert found.rows()[1][0] == "share"
    assert named.mean("share") == found.mean("share")
    with pytest.raises(ValueError, match="no value 'shape' is recorded, there are: share"):
        found.named(shape="words right")


def test_words_that_are_the_same_in_all_runs_have_no_row() -> None:
    for values, wanted in ((["none", "none"], 0), (["none", "some"], 1), (["nan", "nan"], 1), ([1, 1], 1)):
        runs = {f"seed {n}": row(value) for n, value in enumerate(values)}
        names = [each[0] for each in Trial("A01", "line", "{share}", runs=runs).rows()]
        assert names.count("share") == wanted, values


def test_a_table_leaves_out_what_it_is_told() -> None:
    found = recorded()
    assert [row[0] for row in found.without("share").rows()] == ["value", "holds"]
    assert [row[0] for row in found.rows()] == ["value", "share", "holds"]
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
def test_the_footer_adds_minutes_and_names_each_machine_once(minutes, time) -> None:
    runs = {f"seed {n}": row() | {"minutes": minutes, "machine": m} for n, m in enumerate("ba")}
    found = Trial("A01", "line", "{share}", runs=runs)
    assert found.minutes == 2 * minutes
    assert f"Recorded: 2 runs, {time} on a; b; of the seeds" in found.footer
    several = Trial("A01", "line", "{share}", runs={**runs, "seed 2": runs["seed 0"] | {"machine": "<b"}})
    assert " on &lt;b; a; b; of" in several._repr_html_()


def test_records_are_found_in_the_folders_of_lessons(here, monkeypatch) -> None:
    record = {
        "claims": {"A01": {"says": "{share:.0%}", "budget": False}},
        "runs": {"seed 0": {"seed": 0, "minutes": 1.0, "machine": "m", "claims": {"A01": row()}}},
        "sweeps": {"A01": {"curve": {"code": "c", "figures": {"x": [1, 2]}}}},
    }
    run_trials.write_record("evidence/line", record, here)
    monkeypatch.setattr(trials, "HOME", here / "lib" / "exformer_lessons")
    assert trial("A01").mean("share") == 0.9
    assert trial("A01").command == "make trials NB=evidence/line"
    assert trial("A01", "curve") == {"x": [1, 2]}
    assert trial("A01", of="evidence/line").runs
    assert not trial("A01", of="line").runs
    assert repr(trial("A02")) == "Claim A02: nothing is recorded yet: make trials NB=the lesson"
    assert "<table>" not in trial("A02")._repr_html_()
    with pytest.raises(ValueError, match="sweep 'other' of claim A01 is not recorded: make trials"):
        trial("A01", "other")


# --- The book's own claims ---


def lacks(lesson, record, listed):
    """Return what is wrong with the trials of a notebook."""
    wrong, claims = [], run_trials.tried(lesson)
    for claim in claims:
        if claim.claim_id not in record["claims"]:
            wrong.append(f"{claim.claim_id} is not tried: make trials NB={lesson.key}")
            continue
        found = read_trial(lesson.key, record, claim.claim_id)
        theirs = complaints(found, lesson.fingerprint(claim))
        if (found.says, found.budget) != (claim.says, claim.budget):
            theirs.append("it was recorded with another sentence")
        wrong += [f"{claim.claim_id}: {each}" for each in theirs]
        if not theirs and claim.stored:
            known = {"says": claim.says, "values": found.runs["seed 0"]["values"]}
            if not same_claim(known, claim.stored, read_tags(claim.cell.tags)):
                wrong.append(f"{claim.claim_id}: seed 0 found {known['values']}, the lesson found others")
    known = {each.claim_id for each in claims}
    wrong += [f"{each}: a record without a claim" for each in sorted(set(record["claims"]) - known)]
    kept = record.get("sweeps", {})
    for claim_id, name, _, code in listed:
        if kept.get(claim_id, {}).get(name, {}).get("code") != code:
            wrong.append(f"{claim_id}: the sweep {name} is missing or stale: make trials NB={lesson.key}")
    return wrong


@pytest.mark.parametrize("path", lesson_code.paths(), ids=lesson_code.key_of)
def test_each_claim_that_depends_on_a_training_is_tried(path: Path) -> None:
    lesson = lesson_code.load(path)
    listed = run_trials.sweeps(lesson.key)
    assert lacks(lesson, run_trials.read_record(lesson.key), listed) == []


def test_each_record_belongs_to_a_notebook() -> None:
    paths = [*HOME.rglob("trials.json"), *HOME.rglob("sweeps.py")]
    keys = {"/".join(reversed(path.relative_to(HOME).parts[:-1])) for path in paths}
    assert keys <= {lesson_code.key_of(path) for path in lesson_code.paths()}


def test_a_record_that_does_not_fit_its_lesson_is_found(here) -> None:
    stored = {"id": "A01", "says": "It learns {good:.2f}.", "values": {"good": 0.9}}
    output = {"output_type": "display_data", "data": {}, "metadata": {"exformer": stored}}
    cell = {"cell_type": "code", "source": LESSON[4], "metadata": {"tags": []}, "outputs": [output]}
    lesson = book_of(here, [*LESSON[:4], cell])
    code = lesson.fingerprint(lesson.claims[0])

    def record(**changes):
        runs = {}
        for number, run in enumerate(RUNS):
            found = row(code=code, losses=[number], steps=40 if run == "4x steps" else 10)
            found["values"] = {"good": changes.get("good", 0.9)}
            runs[run] = {"minutes": 1, "machine": "m", "claims": {"A01": found}}
        claims = {"A01": {"says": stored["says"], "budget": False} | changes.get("claim", {})}
        return {"claims": claims, "runs": runs} | changes.get("more", {})

    assert lacks(lesson, record(), []) == []
    assert lacks(lesson, record(good=0.904), []) == []
    assert "the lesson found others" in lacks(lesson, record(good=0.91), [])[0]
    assert "another sentence" in lacks(lesson, record(claim={"says": "x"}), [])[0]
    assert lacks(lesson, {"claims": {}, "runs": {}}, []) == ["A01 is not tried: make trials NB=line"]
    more = {"claims": {"A01": {"says": stored["says"], "budget": False}, "B01": {}}}
    assert lacks(lesson, record(more=more), []) == ["B01: a record without a claim"]
    curve = [("A01", "curve", None, "c")]
    assert "the sweep curve is missing or stale" in lacks(lesson, record(), curve)[0]
    sweeps = {"A01": {"curve": {"code": "c", "figures": 1}}}
    assert lacks(lesson, record(more={"sweeps": sweeps}), curve) == []
