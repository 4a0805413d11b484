"""The benchmark: fair turns, right statistics, no race between unequal works, and a run from end to end."""

import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from bench.encoder_decoder import CONTENDERS, QUICK, SETTINGS  # noqa: E402
from bench.equal_work import check_equal_work, loss_and_slope  # noqa: E402
from bench.memory import added_bytes, peak_bytes  # noqa: E402
from bench.report import table  # noqa: E402
from bench.setting import BOS, EOS, PAD, make_batches, make_step, padded_share  # noqa: E402
from bench.timing import Summary, best_peer, summarize, time_in_turns, turns  # noqa: E402

NAMES = ["a", "b", "c", "d"]


class Clock:
    """Time that passes only when it is told to."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now

    def step(self, *seconds):
        """Return a function of the turn that takes so long; the last time is for all later turns."""

        def run(turn):
            self.now += seconds[min(turn, len(seconds) - 1)]

        return run


# --- turns ---


def test_two_take_turns_as_a_b_b_a():
    assert [turns(["a", "b"], turn) for turn in range(4)] == [
        ["a", "b"],
        ["b", "a"],
        ["b", "a"],
        ["a", "b"],
    ]


@pytest.mark.parametrize("n", [2, 3, 4])
def test_each_stands_in_each_place_equally_often(n):
    orders = [turns(NAMES[:n], turn) for turn in range(2 * n)]
    places = Counter((name, place) for order in orders for place, name in enumerate(order))
    assert all(sorted(order) == NAMES[:n] for order in orders)
    assert set(places.values()) == {2}
    assert len(places) == n * n


# --- the timer ---


def test_seconds_are_those_of_each_step_in_each_round():
    clock = Clock()
    steps = {"a": clock.step(1.0, 2.0, 3.0), "b": clock.step(0.5)}
    seconds = time_in_turns(steps, warmup=0, min_rounds=3, budget_s=0.0, clock=clock)
    assert seconds == {"a": [1.0, 2.0, 3.0], "b": [0.5, 0.5, 0.5]}


def test_warm_up_does_not_count():
    clock = Clock()
    seconds = time_in_turns(
        {"a": clock.step(60.0, 60.0, 1.0), "b": clock.step(9.0, 9.0, 2.0)},
        warmup=2,
        min_rounds=2,
        budget_s=0.0,
        clock=clock,
    )
    assert seconds == {"a": [1.0, 1.0], "b": [2.0, 2.0]}


def test_rounds_go_on_until_the_time_is_used_up():
    clock = Clock()
    steps = {"a": clock.step(1.0), "b": clock.step(2.0)}
    # A round takes 3 s; the fifth begins at 12 s and ends at 15 s.
    seconds = time_in_turns(steps, warmup=0, min_rounds=2, budget_s=12.5, clock=clock)
    assert [len(column) for column in seconds.values()] == [5, 5]


def test_all_are_called_in_their_turns_with_the_number_of_the_round():
    called = []
    steps = {name: lambda turn, name=name: called.append((turn, name)) for name in NAMES[:3]}
    time_in_turns(steps, warmup=1, min_rounds=6, budget_s=0.0)
    assert called == [(turn, name) for turn in range(7) for name in turns(NAMES[:3], turn)]


@pytest.mark.parametrize(("warmup", "min_rounds"), [(-1, 2), (0, 1)])
def test_rounds_that_cannot_be_compared_are_refused(warmup, min_rounds):
    with pytest.raises(ValueError, match=f"got {min_rounds} and {warmup}"):
        time_in_turns({"a": print}, warmup=warmup, min_rounds=min_rounds, budget_s=1.0)


# --- the statistics ---


def test_ratios_are_taken_round_by_round():
    # The rounds say 1/2, 1 and 1/4; the medians of the columns would say 4/10.
    found = summarize({"ours": [1.0, 10.0, 4.0], "peer": [2.0, 10.0, 16.0]}, ours="ours")
    assert found["peer"] == Summary(median_s=10.0, ratio=0.5, ratio_low=0.375, ratio_high=0.75)
    assert found["ours"] == Summary(median_s=4.0, ratio=1.0, ratio_low=1.0, ratio_high=1.0)


def test_one_disturbed_round_does_not_change_the_ratio():
    peer = [2.0] * 9
    disturbed = summarize({"ours": [1.0] * 8 + [500.0], "peer": peer}, ours="ours")
    assert disturbed["peer"].ratio == 0.5


def test_quartiles_hold_the_middle_half():
    found = summarize({"ours": [1.0, 2.0, 3.0, 4.0, 5.0], "peer": [1.0] * 5}, ours="ours")
    assert (found["peer"].ratio_low, found["peer"].ratio_high) == (2.0, 4.0)


def test_the_best_peer_is_the_fastest_beside_ours():
    found = {
        name: Summary(0.0, ratio, 0.0, 0.0) for name, ratio in zip(NAMES, (1.0, 0.7, 0.9, 0.8), strict=True)
    }
    assert best_peer(found, ours="a") == "c"


# --- the work ---


def test_batches_are_padded_sentences_of_real_lengths():
    setting = SETTINGS["encoder-decoder-d128"]
    batches = make_batches(setting)
    assert len(batches) == setting.n_batches
    assert 0.01 < padded_share(batches) < 0.25
    for batch in batches:
        assert len(batch.src) == len(batch.tgt_in) == setting.batch_size
        assert (batch.tgt_in[:, 0] == BOS).all()
        assert torch.equal(batch.tgt_in == PAD, batch.tgt_out == PAD)
        assert (batch.src == EOS).sum() == (batch.tgt_out == EOS).sum() == setting.batch_size
        words = batch.tgt_in[:, 1:] != PAD
        assert torch.equal(batch.tgt_in[:, 1:][words], batch.tgt_out[:, :-1][words])
    lengths = torch.cat([(batch.src != PAD).sum(dim=1) for batch in batches]) - 1.0
    assert 0.6 * setting.mean_words < lengths.mean() < 1.6 * setting.mean_words
    again = make_batches(setting)
    assert all(torch.equal(one.src, other.src) for one, other in zip(batches, again, strict=True))


@pytest.fixture(scope="module")
def built():
    """Build all contenders, tiny ones."""
    torch.manual_seed(0)
    return {name: build(QUICK) for name, build in CONTENDERS.items()}


def test_all_contenders_do_the_same_work(built):
    losses = check_equal_work(built, make_batches(QUICK))
    assert list(losses) == list(CONTENDERS)
    assert max(losses.values()) - min(losses.values()) < 1e-5


@pytest.mark.parametrize("name", list(CONTENDERS)[1:])
def test_without_dropout_training_computes_the_same_loss(name):
    torch.manual_seed(0)
    setting = replace(QUICK, dropout=0.0)
    two = {who: CONTENDERS[who](setting) for who in (next(iter(CONTENDERS)), name)}
    batches = make_batches(setting)
    check_equal_work(two, batches)
    for batch in batches:  # three steps later the models are still the same
        ours, theirs = (make_step(contender)(batch) for contender in two.values())
        assert abs(ours - theirs) < 2e-5


def leave_out_a_layer(contender):
    contender.model.transformer.encoder.forward = lambda src, **_: src


def leave_out_smoothing(contender):
    without = CONTENDERS["torch nn.Transformer"](replace(QUICK, label_smoothing=0.0))
    object.__setattr__(contender, "loss", lambda batch: without.loss(batch))
    without.model.forward = contender.model.forward


def leave_out_the_slope(contender):
    compute = contender.model.transformer.forward
    contender.model.transformer.forward = lambda src, tgt, **masks: compute(src.detach(), tgt, **masks)


@pytest.mark.parametrize("cheat", [leave_out_a_layer, leave_out_smoothing, leave_out_the_slope])
def test_a_model_that_leaves_work_out_is_refused(built, cheat):
    name = "torch nn.Transformer"
    contender = CONTENDERS[name](QUICK)
    cheat(contender)
    with pytest.raises(ValueError, match=r"torch nn\.Transformer .* do not do the same work"):
        check_equal_work({"exformer": built["exformer"], name: contender}, make_batches(QUICK))


def test_a_model_that_learns_fewer_numbers_is_refused(built):
    # A bias of keys moves all scores of a query alike: its slope is zero, so only the count gives it away.
    name = "Marian, sdpa"
    contender = CONTENDERS[name](QUICK)
    contender.model.model.encoder.layers[0].self_attn.k_proj.bias.requires_grad_(False)
    with pytest.raises(ValueError, match=r"Marian, sdpa has .* do not do the same work"):
        check_equal_work({"exformer": built["exformer"], name: contender}, make_batches(QUICK))


def test_the_check_leaves_no_gradient_behind(built):
    loss_and_slope(built["exformer"], make_batches(QUICK))
    assert all(p.grad is None for p in built["exformer"].model.parameters())
    assert built["exformer"].model.training


def test_a_step_trains():
    torch.manual_seed(0)
    contender, batch = CONTENDERS["exformer"](replace(QUICK, dropout=0.0)), make_batches(QUICK)[0]
    step = make_step(contender)
    losses = [step(batch) for _ in range(5)]
    assert losses == sorted(losses, reverse=True)
    assert len(set(losses)) == 5


# --- memory ---


def test_memory_that_is_used_is_seen():
    before = peak_bytes()
    if before is None:
        assert sys.platform == "win32"
        return
    block = torch.ones(before // 4 + 25_000_000)  # as much as ever before, and 100 MB
    assert peak_bytes() - before > 50e6
    del block
    assert added_bytes("exformer", QUICK) >= 0


# --- the whole ---


def run(*arguments):
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, str(ROOT / "bench" / "run.py"), *arguments],
        capture_output=True,
        text=True,
        env=environment,
    )


def test_a_quick_run_from_end_to_end(tmp_path):
    file = tmp_path / "new" / "quick.json"
    done = run("--quick", "--json", str(file))
    assert done.returncode == 0, done.stderr
    result = json.loads(file.read_text(encoding="utf-8"))
    assert set(result) == {"machine", "threads", "clock", "optimizer", "warmup_rounds", "races"}
    assert {"cpu", "cores", "vector_instructions", "system", "python", "torch", "transformers"} <= set(
        result["machine"]
    )
    assert [race["setting"]["dropout"] for race in result["races"]] == [0.1, 0.0]
    for race in result["races"]:
        check_race(race)
        assert table(race).strip() in done.stdout
    assert str(file) in done.stdout


def check_race(race):
    """Hold a race of the JSON to its form, and its summary to its rounds."""
    assert set(race) == {
        *("name", "setting", "batches", "padded_share", "rounds"),
        *("best_peer", "ratio_to_best_peer", "contenders"),
    }
    assert list(race["contenders"]) == list(CONTENDERS)
    seconds = {name: found["seconds"] for name, found in race["contenders"].items()}
    for name, found in race["contenders"].items():
        assert set(found) == {
            *("median_s", "ratio", "ratio_low", "ratio_high"),
            *("peak_bytes", "parameters", "loss", "seconds"),
        }
        assert len(found["seconds"]) == race["rounds"] >= 8
        assert all(second > 0 for second in found["seconds"])
        assert found["ratio"] == summarize(seconds, ours="exformer")[name].ratio
        assert found["parameters"] == race["contenders"]["exformer"]["parameters"]
    assert race["best_peer"] != "exformer"
    assert race["ratio_to_best_peer"] == race["contenders"][race["best_peer"]]["ratio"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ("encoder-decoder-d129",),
            "there is no encoder-decoder-d129; there is encoder-decoder-d128, encoder",
        ),
        (("--threads", "0"), "--threads must be at least 1, got 0"),
    ],
)
def test_what_cannot_be_run_is_refused(arguments, says):
    done = run(*arguments)
    assert done.returncode == 2
    assert says in done.stderr
