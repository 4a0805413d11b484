"""The benchmark: fair turns, right statistics, no race between unequal works, and a run from end to end."""

import json
import os
import signal
import sys
from collections import Counter
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from multiprocessing import get_context

import pytest
import torch
from bench import gpt
from bench.encoder_decoder import CONTENDERS, QUICK, SETTINGS
from bench.equal_work import check_equal_work, loss_and_slope
from bench.memory import added_bytes, measure_alone, peak_bytes
from bench.report import table
from bench.run import read_races
from bench.setting import BOS, EOS, OPTIMIZER, PAD, Contender, make_batches, make_step
from bench.suites import SUITES
from bench.timing import Summary, best_peer, summarize, time_in_turns, turns
from torch.nn.modules.module import register_module_forward_hook

from exformer.nn.dropout import Dropout

# x-transformers uses torch.jit.script as it is imported, which PyTorch has deprecated.
pytestmark = [
    pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning"),
    pytest.mark.usefixtures("frozen"),
]

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


def test_turns_and_numbers_of_rounds():
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
    assert 0.01 < SUITES["encoder-decoder"].padded_share(batches) < 0.25
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


@pytest.mark.parametrize("name", list(CONTENDERS)[1:])
def test_each_number_of_ours_goes_to_its_place(name):
    # In a new model all norms are alike and all biases zero: whether they were mistaken couldn't be seen.
    torch.manual_seed(0)
    setting = replace(QUICK, n_layers=3)
    two = {who: CONTENDERS[who](setting) for who in ("exformer", name)}
    for p in two["exformer"].model.parameters():
        torch.nn.init.normal_(p, std=0.3)
    check_equal_work(two, make_batches(setting))


def test_x_transformers_drops_what_ours_does():
    setting = replace(QUICK, n_layers=3, dropout=0.25)
    batch = make_batches(setting)[0]
    dropped = {}
    for name in ("exformer", "x-transformers"):
        contender, shapes = CONTENDERS[name](setting), dropped.setdefault(name, [])

        def note(module, args, output, shapes=shapes):
            rate = {Dropout: "rate", torch.nn.Dropout: "p"}.get(type(module))
            if rate and getattr(module, rate):
                shapes.append((tuple(args[0].shape), getattr(module, rate)))

        with register_module_forward_hook(note):
            contender.loss(batch)
    assert dropped["x-transformers"] == dropped["exformer"]
    assert len(dropped["exformer"]) == 2 + (2 + 3) * setting.n_layers
    of_weights = [part.dropout for part in contender.model.modules() if type(part).__name__ == "Attend"]
    assert of_weights == [0.0] * (1 + 2) * setting.n_layers


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


# --- language models ---


@pytest.fixture(scope="module")
def built_gpts():
    """Build all language models, tiny ones."""
    torch.manual_seed(0)
    return {name: build(gpt.QUICK) for name, build in gpt.CONTENDERS.items()}


def test_texts_are_read_up_to_what_comes_next():
    setting = gpt.SETTINGS["gpt-d128"]
    batches = gpt.make_texts(setting)
    assert len(batches) == setting.n_batches
    for batch in batches:
        assert batch.ids.shape == batch.targets.shape == (setting.batch_size, setting.context)
        assert torch.equal(batch.ids[:, 1:], batch.targets[:, :-1])
        assert 0 < batch.ids.min() <= batch.ids.max() < setting.vocab_size
    assert torch.equal(gpt.make_texts(setting)[0].ids, batches[0].ids)


def test_the_larger_language_model_has_the_size_of_nanogpts():
    contender = gpt.exformer(gpt.SETTINGS["gpt-d384"])
    assert 10.6e6 < contender.n_parameters() < 10.9e6


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_all_language_models_do_the_same_work(built_gpts, precision):
    contenders = {name: replace(found, precision=precision) for name, found in built_gpts.items()}
    losses = check_equal_work(contenders, gpt.make_texts(gpt.QUICK))
    assert list(losses) == list(gpt.CONTENDERS)
    approximation = losses.pop("GPT-2")
    assert max(losses.values()) - min(losses.values()) < (1e-5 if precision == "float32" else 0.02)
    assert abs(approximation - losses["exformer"]) < (1e-3 if precision == "float32" else 0.02)


def test_gpt2_races_as_hugging_face_configures_it():
    from transformers import GPT2Config

    theirs = gpt.CONTENDERS["GPT-2"](gpt.QUICK)
    assert theirs.model.config.activation_function == GPT2Config().activation_function
    assert theirs.model.config._attn_implementation == "sdpa"


def test_only_who_approximates_may_differ():
    torch.manual_seed(0)
    setting = replace(gpt.SETTINGS["gpt-d128"], batch_size=2, n_batches=1)
    ours = {"exformer": gpt.CONTENDERS["exformer"](setting)}
    approximates = gpt.CONTENDERS["GPT-2"](setting)
    batches = gpt.make_texts(setting)
    check_equal_work({**ours, "GPT-2": approximates}, batches)
    with pytest.raises(ValueError, match=r"GPT-2 has .* do not do the same work"):
        check_equal_work({**ours, "GPT-2": replace(approximates, tolerance=0.0)}, batches)
    for layer in approximates.model.transformer.h:
        layer.mlp.act = torch.nn.SiLU()  # another bend is not an approximation of ours
    with pytest.raises(ValueError, match=r"GPT-2 has .* do not do the same work"):
        check_equal_work({**ours, "GPT-2": approximates}, batches)


@pytest.mark.parametrize(("precision", "wanted"), [("float32", False), ("bfloat16", True)])
def test_a_step_computes_in_its_precision(precision, wanted):
    seen = []

    def loss(batch):
        seen.append(torch.is_autocast_enabled("cpu"))
        return model(batch).float().square().mean()

    model = torch.nn.Linear(3, 2)
    make_step(Contender(model, loss, precision))(torch.ones(4, 3))
    assert seen == [wanted]


def let_the_future_be_seen(contender):
    compute = contender.model.encoder.forward
    contender.model.encoder.forward = lambda x, mask, is_causal: compute(x)


def leave_out_a_network(contender):
    contender.model.encoder.layers[-1]._ff_block = torch.zeros_like


@pytest.mark.parametrize("cheat", [let_the_future_be_seen, leave_out_a_network])
def test_a_language_model_that_leaves_work_out_is_refused(built_gpts, cheat):
    name = "torch nn.TransformerEncoder"
    contender = gpt.CONTENDERS[name](gpt.QUICK)
    ours = {"exformer": built_gpts["exformer"]}
    check_equal_work({**ours, name: contender}, gpt.make_texts(gpt.QUICK))
    cheat(contender)
    with pytest.raises(ValueError, match=r"nn\.TransformerEncoder .* do not do the same work"):
        check_equal_work({**ours, name: contender}, gpt.make_texts(gpt.QUICK))


def test_slopes_are_those_of_our_parameters(built_gpts):
    """GPT-2's table is ours times √d_model: without the factor the gradients could not be compared."""
    batches = gpt.make_texts(gpt.QUICK)
    check_equal_work(built_gpts, batches)
    name = "GPT-2, PyTorch's gelu"
    without = replace(built_gpts[name], factors={})
    with pytest.raises(ValueError, match=r"GPT-2, PyTorch's gelu has .* do not do the same work"):
        check_equal_work({"exformer": built_gpts["exformer"], name: without}, batches)


# --- memory ---


def test_memory_that_is_used_is_seen():
    before = peak_bytes()
    if before is None:
        assert sys.platform == "win32"
        return
    block = torch.ones(before // 4 + 25_000_000)  # as much as ever before, and 100 MB
    assert peak_bytes() - before > 50e6
    del block
    assert added_bytes("exformer", QUICK, "encoder-decoder") >= 0


def test_a_process_that_fails_is_named():
    with pytest.raises(RuntimeError, match="the memory of nobody was not measured") as caught:
        measure_alone(["nobody"], {}.__getitem__, get_context("spawn"))
    assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.skipif(sys.platform == "win32", reason="no such signal")
def test_a_process_that_the_system_ends_is_named():
    """As where memory is short."""
    with pytest.raises(RuntimeError, match=f"the memory of {signal.SIGKILL} was not measured") as caught:
        measure_alone([signal.SIGKILL], signal.raise_signal, get_context("spawn"))
    assert isinstance(caught.value.__cause__, BrokenProcessPool)


# --- the whole ---


@pytest.fixture(scope="module")
def quick_run(said_by, tmp_path_factory):
    """Run the program once, with a file that has races of other sizes; return what it says and the file."""
    file = tmp_path_factory.mktemp("quick") / "found.json"
    names = ("quick-encoder-decoder", "gpt-d384", "gpt-d128")
    file.write_text(json.dumps({"races": [{"name": name, **EARLIER} for name in names]}))
    return said_by("run", "--quick", "--json", file), file


EARLIER = {"rounds": 7, "machine": {"cpu": "another"}, "optimizer": "another"}


def test_a_quick_run_from_end_to_end(quick_run):
    said, file = quick_run
    result = json.loads(file.read_text(encoding="utf-8"))
    assert set(result) == {"races"}
    races = [race for race in result["races"] if race["machine"] != EARLIER["machine"]]
    variants = [(race["setting"]["dropout"], race["setting"].get("precision")) for race in races]
    assert variants == [(0.1, None), (0.0, None), (0.0, "float32"), (0.0, "bfloat16")]
    for race in races:
        check_race(race, list(CONTENDERS if "encoder" in race["name"] else gpt.CONTENDERS))
        assert table(race).strip() in said
    assert str(file) in said


def check_race(race, names):
    """Check the form of a race, and its summary against its rounds."""
    assert set(race) == {
        *("name", "machine", "threads", "clock", "optimizer", "warmup_rounds"),
        *("setting", "sizes", "batches", "padded_share", "rounds"),
        *("best_peer", "ratio_to_best_peer", "contenders"),
    }
    assert {
        *("cpu", "cores", "vector_instructions", "system"),
        *("python", "torch", "transformers", "x-transformers"),
    } <= set(race["machine"])
    assert list(race["contenders"]) == names
    seconds = {name: found["seconds"] for name, found in race["contenders"].items()}
    for name, found in race["contenders"].items():
        assert set(found) == {
            *("median_s", "ratio", "ratio_low", "ratio_high"),
            *("peak_bytes", "parameters", "loss", "seconds"),
        }
        assert len(found["seconds"]) == race["rounds"] >= 8
        assert all(second > 0 for second in found["seconds"])
        again = summarize(seconds, ours="exformer")[name].ratio  # of seconds with six digits
        assert found["ratio"] == pytest.approx(again, rel=2e-5)
        assert found["parameters"] == race["contenders"]["exformer"]["parameters"]
    assert race["best_peer"] != "exformer"
    assert race["ratio_to_best_peer"] == race["contenders"][race["best_peer"]]["ratio"]


def test_races_of_other_sizes_stay_in_the_file(quick_run):
    races = json.loads(quick_run[1].read_text(encoding="utf-8"))["races"]
    quick = ["quick-encoder-decoder", "quick-gpt"]
    assert [race["name"] for race in races] == ["gpt-d128", "gpt-d384", *sorted([*quick, *quick])]
    assert races[:2] == [{"name": name, **EARLIER} for name in ("gpt-d128", "gpt-d384")]
    assert all(race["rounds"] > 7 and race["optimizer"] == OPTIMIZER for race in races[2:])


def test_a_size_is_kept_as_soon_as_it_has_raced(tmp_path, monkeypatch):
    """What was measured before a run is broken off is in the file."""
    from bench import run as program

    def broken(suite, setting, *, clock):
        if isinstance(setting, gpt.GPTSetting):
            raise KeyboardInterrupt
        return {"contenders": {"exformer": {}}}

    file = tmp_path / "found.json"
    monkeypatch.setattr(sys, "argv", ["run.py", "--quick", "--json", str(file)])
    monkeypatch.setattr(program, "race", broken)
    monkeypatch.setattr(program, "measure", lambda *args, **options: {})
    monkeypatch.setattr(program, "table", lambda found: "")
    with pytest.raises(KeyboardInterrupt):
        program.main()
    races = json.loads(file.read_text(encoding="utf-8"))["races"]
    assert [race["name"] for race in races] == ["quick-encoder-decoder"] * 2


@pytest.mark.skipif(sys.platform == "win32", reason="no such pipes")
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert read_races(tmp_path / "pipe") == []


OLDER = json.dumps({"machine": {"cpu": "a chip"}, "races": [{"name": "gpt-d128"}]})


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "something else"),
        ("[]", "something else"),
        ('{"scores": 1}', "something else"),
        (OLDER, "something else"),  # whose machine stood beside all races
        (
            '{"races": [{"name": "gpt-d129", "machine": "m", "optimizer": "o"}]}',
            "gpt-d129, which nobody races",
        ),
    ],
)
def test_a_file_of_something_else_is_not_written_over(refusal, tmp_path, content, says):
    file = tmp_path / "mine.json"
    file.write_text(content, encoding="utf-8")
    said = refusal("run", "--quick", "--json", str(file))
    assert f"{file} holds {says}" in said
    assert "move it away" in said
    assert file.read_text(encoding="utf-8") == content


@pytest.mark.parametrize("program", ["run", "generation", "byte_pairs", "shakespeare"])
def test_a_place_that_takes_no_file_is_refused_at_once(refusal, tmp_path, program):
    (tmp_path / "file").touch()
    for place in (tmp_path, tmp_path / "file" / "found.json"):
        assert str(tmp_path) in refusal(program, "--quick", "--json", str(place))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ("gpt-d129",),
            "there is no gpt-d129; there is encoder-decoder-d128, encoder-decoder-d512, gpt-d128",
        ),
        (("--threads", "0"), "--threads must be at least 1, got 0"),
    ],
)
def test_what_cannot_be_run_is_refused(refusal, arguments, says):
    assert says in refusal("run", *arguments)
