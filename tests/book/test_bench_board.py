"""The CPU-minute board: its rules, its statistics, what an entry is given, and a quick run of all entries."""

import importlib.util
import json
import math
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "book" / "_ext")]

from bench import board, nano_gpt  # noqa: E402
from bench.board import (  # noqa: E402
    ENTRIES,
    FOLDER,
    RefusalError,
    Trial,
    check_source,
    environment,
    judge,
    make_rows,
    merge,
    sit,
    student_tail,
    validation_loss,
    welch,
)
from results_data import FORMS, faults  # noqa: E402

from exformer.corpora.real import tiny_shakespeare  # noqa: E402
from exformer.hub.pretrained import load_model, save_model  # noqa: E402
from exformer.models.decoder_lm import DecoderLM, DecoderLMConfig  # noqa: E402
from exformer.models.encoder_lm import EncoderLM, EncoderLMConfig  # noqa: E402
from exformer.recipes.datasets import CORPORA, Text  # noqa: E402
from exformer.tokenizers.characters_and_words import CharTokenizer  # noqa: E402
from exformer.training.loop import training_steps  # noqa: E402

TRAIN = "the keys to the cabinet are on the table.\r\n" * 30
VAL = "a cat is there. a hat is on its ear or its leash.\n" * 6
DATA = Text(TRAIN, VAL, {})


def an_entry(folder: Path, code: str) -> Path:
    """Write an entry."""
    path = folder / "somebody.py"
    path.write_text(code, encoding="utf-8")
    return path


def run(path: Path, *, limit: float = 60.0) -> Trial:
    """Judge an entry on the short text."""
    return judge(path, DATA, seed=3, seconds=17, limit=limit, cores=1)


# --- what an entry is given ---


def test_an_entry_is_given_the_training_part_alone_and_an_empty_folder(tmp_path: Path) -> None:
    seen = tmp_path / "seen.json"
    (tmp_path / "data_of_its_own").touch()
    code = f"""
import json, os, sys
from pathlib import Path
given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
train = Path(given.pop("--train"))
cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
Path({str(seen)!r}).write_text(json.dumps({{
    "text": train.read_bytes().decode(), "given": given, "here": os.listdir(), "cores": cores,
    "beside": os.listdir(train.parent), "environment": dict(os.environ),
    "data": os.listdir(os.environ["EXFORMER_DATA"]),
}}))
"""
    with pytest.raises(RefusalError, match=r"^somebody, seed 3: refused, it left no model$"):
        run(an_entry(tmp_path, code))
    found = json.loads(seen.read_text(encoding="utf-8"))
    assert found["text"] == TRAIN
    assert not any(VAL[i : i + 24] in found["text"] for i in range(len(VAL) - 24))
    assert found["here"] == ["somebody.py"], "no file that lay beside it"
    assert sorted(found["beside"]) == ["model", "nothing", "train.txt", "work"]
    assert (found["data"], found["cores"]) == ([], 1)
    assert found["given"].pop("--out").endswith("model")
    assert found["given"] == {"--seed": "3", "--seconds": "17"}
    assert "ATEN_CPU_CAPABILITY" not in found["environment"]
    assert found["environment"]["OMP_NUM_THREADS"] == "1"


def test_the_library_finds_no_text_in_an_entry_s_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [*os.environ]:
        monkeypatch.delenv(name)
    for name, value in environment(tmp_path, 1).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConnectionError):
        tiny_shakespeare()


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="the system has no such call")
def test_the_judge_has_its_own_cores_again(tmp_path: Path) -> None:
    before = os.sched_getaffinity(0)
    with pytest.raises(RefusalError):
        run(an_entry(tmp_path, "raise SystemExit(2)"))
    assert os.sched_getaffinity(0) == before


# --- who is refused ---


def test_who_takes_too_long_is_refused(tmp_path: Path) -> None:
    late = an_entry(tmp_path, "import time\ntime.sleep(5)\n")
    with pytest.raises(
        RefusalError, match=r"^somebody, seed 3: refused, it was not done after 0\.5 seconds$"
    ):
        run(late, limit=0.5)


def test_who_fails_is_refused_with_its_own_words(tmp_path: Path) -> None:
    wrong = an_entry(tmp_path, "import helper_of_mine\n")
    with pytest.raises(RefusalError, match=r"ended with code 1: ModuleNotFoundError.*helper_of_mine"):
        run(wrong)


def test_a_folder_that_is_no_model_is_refused(tmp_path: Path) -> None:
    code = "import sys\nopen(sys.argv[-1] + '/model.pt', 'w').write('weights')\n"
    with pytest.raises(RefusalError, match="seed 3: refused, its model can't be judged: there is no model "):
        run(an_entry(tmp_path, code))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("from exformer.corpora.real import tiny_shakespeare", "has texts"),
        ("from exformer import load_model", "has texts, weights"),
        ("from exformer import recipes", "imports exformer.recipes"),
        ("import exformer.hub.pretrained as hub; hub.load_model('shakespeare-char')", "uses load_model"),
        ("import urllib.request", "a network"),
        ("from os import path; import subprocess", "processes"),
        ("from . import weights", "expected numpy, torch, exformer"),
        ("import transformers", "expected numpy, torch, exformer"),
        ("__import__('exformer.corpora')", "uses __import__"),
    ],
)
def test_an_entry_has_nothing_but_the_text_it_is_given(tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(RefusalError, match=said):
        check_source(an_entry(tmp_path, f'"""Mine."""\nimport math\n{line}\n'))


def test_what_an_entry_may_import(tmp_path: Path) -> None:
    code = '"""Mine: it is new.\n\nMore.\n"""\nimport os.path\nimport numpy as np\nfrom torch import nn\n'
    code += "from exformer.hub.pretrained import save_model\nfrom exformer import DecoderLM\n"
    assert check_source(an_entry(tmp_path, code)) == "Mine: it is new"


def test_the_entries_are_those_of_the_folder_and_keep_the_rules() -> None:
    assert sorted(ENTRIES) == sorted(path.stem for path in FOLDER.glob("*.py"))
    titles = [check_source(FOLDER / f"{entry}.py") for entry in ENTRIES]
    assert len({*titles}) == len(titles)


# --- the loss ---


def a_model(tokenizer: CharTokenizer, **settings: Any) -> DecoderLM:
    torch.manual_seed(0)
    sizes = {"d_model": 8, "n_heads": 2, "n_layers": 1, "d_ff": 8, "dropout": 0.0}
    return DecoderLM(DecoderLMConfig(tokenizer.vocab_size, **{**sizes, **settings})).eval()


def test_the_loss_is_that_of_each_character_in_windows_of_64(tmp_path: Path) -> None:
    tokenizer = CharTokenizer.from_texts([VAL])
    model = a_model(tokenizer, max_len=100)  # a longer context gains nothing
    save_model(tmp_path, model, tokenizer, card={})
    text = VAL[: 3 * 64 + 20]
    ids, nll = torch.tensor(tokenizer.encode(text)), []
    for begin in (0, 64, 128):
        for position in range(begin + 1, begin + 65):
            with torch.no_grad():
                logits = model(ids[None, begin:position])[0, -1]
            nll.append(-logits.log_softmax(-1)[ids[position]].item())
    assert validation_loss(tmp_path, text) == pytest.approx(sum(nll) / 192, rel=1e-5)


def test_who_can_t_be_judged_by_characters_in_such_windows_is_refused(tmp_path: Path) -> None:
    tokenizer = CharTokenizer.from_texts([VAL])
    save_model(tmp_path / "short", a_model(tokenizer, max_len=32), tokenizer, card={})
    with pytest.raises(ValueError, match="32"):
        validation_loss(tmp_path / "short", VAL)
    both_sides = EncoderLM(EncoderLMConfig(tokenizer.vocab_size, d_model=8, n_heads=2, n_layers=1, d_ff=8))
    save_model(tmp_path / "both", both_sides, tokenizer, card={})
    with pytest.raises(ValueError, match="expected a DecoderLM with a CharTokenizer"):
        validation_loss(tmp_path / "both", VAL)
    few = CharTokenizer.from_texts(["the door"])
    save_model(tmp_path / "few", a_model(few, max_len=64), few, card={})
    with pytest.raises(ValueError, match="unknown"):
        validation_loss(tmp_path / "few", VAL)


# --- records ---


@pytest.mark.parametrize(
    ("t", "freedom", "p"),
    [
        (6.3138, 1, 0.05),  # of tables
        (31.8205, 1, 0.01),
        (2.9200, 2, 0.05),
        (2.1318, 4, 0.05),
        (3.7469, 4, 0.01),
        (1.8595, 8, 0.05),
        (2.8965, 8, 0.01),
        (0.0, 3.7, 0.5),
        (-2.9200, 2, 0.95),
        (2.0, 2, 0.5 - 2 / (2 * math.sqrt(6))),  # two degrees of freedom: 1/2 - t / (2 √(2 + t²))
        (50.0, 2, 0.5 - 50 / (2 * math.sqrt(2502))),
    ],
)
def test_student_s_tail_is_that_of_tables(t: float, freedom: float, p: float) -> None:
    assert student_tail(t, freedom) == pytest.approx(p, rel=1e-3)


def test_welch_by_hand() -> None:
    # means 2 and 6, variances 2 and 2, two of each: t = 4 / √2, 2 degrees of freedom
    assert welch([1.0, 3.0], [5.0, 7.0]) == pytest.approx(0.5 - math.sqrt(8) / (2 * math.sqrt(10)))
    # variances 1 and 0, three of each: t = 5 / √(1/3), and (1/3)² / ((1/3)² / 2) = 2 degrees of freedom
    assert welch([1.0, 2.0, 3.0], [7.0] * 3) == pytest.approx(0.5 - math.sqrt(75) / (2 * math.sqrt(77)))
    # two and four: s²/n is 1 and 5/3, t = 6 / √(8/3), (8/3)² / (1/1 + (25/9)/3) = 3.69 degrees of freedom
    p = welch([0.0, 2.0], [4.0, 6.0, 8.0, 10.0])
    assert p == pytest.approx(student_tail(6 / math.sqrt(8 / 3), 192 / 52))
    assert student_tail(6 / math.sqrt(8 / 3), 4) < p < student_tail(6 / math.sqrt(8 / 3), 3)


def test_welch_asks_whether_the_new_mean_is_lower() -> None:
    assert welch([5.0, 7.0], [1.0, 3.0]) == pytest.approx(1 - welch([1.0, 3.0], [5.0, 7.0]))
    assert welch([1.0, 2.0], [1.0, 2.0]) == pytest.approx(0.5)
    assert [welch([1.0, 1.0], [2.0, 2.0]), welch([1.0, 1.0], [1.0, 1.0])] == [0.0, 1.0]


def trials(*losses: float) -> list[Trial]:
    return [Trial(loss, 59.0 + i, 100.0 + i) for i, loss in enumerate(losses)]


def test_a_record_is_what_nobody_has_beaten_since() -> None:
    sitting = {
        "first": trials(1.90, 1.91, 1.92),
        "better": trials(1.60, 1.61, 1.62),
        "worse than the record": trials(1.70, 1.71, 1.72),
        "lower, by chance": trials(1.50, 1.60, 1.70),
    }
    titles = {entry: entry.upper() for entry in sitting}
    rows = {row["entry"]: row for row in make_rows(sitting, titles, budget=60, sitting="today")}
    assert {entry: row["against"] for entry, row in rows.items()} == {
        "first": None,
        "better": "first",
        "worse than the record": "better",
        "lower, by chance": "better",
    }
    assert [entry for entry, row in rows.items() if row["record"]] == ["better"]
    better = rows["better"]
    assert better["p"] == pytest.approx(welch([1.60, 1.61, 1.62], [1.90, 1.91, 1.92]))
    assert (better["mean"], better["sd"]) == (pytest.approx(1.61), pytest.approx(0.01))
    assert (better["seconds"], better["processor_seconds"]) == ([59.0, 60.0, 61.0], [100.0, 101.0, 102.0])
    assert (better["title"], better["budget"], better["sitting"]) == ("BETTER", 60, "today")
    assert rows["worse than the record"]["p"] > 0.99
    assert 0.01 < rows["lower, by chance"]["p"] < 0.5


def test_rows_of_other_sittings_are_kept() -> None:
    def row(entry: str, budget: int, sitting: str) -> dict[str, Any]:
        return {"entry": entry, "budget": budget, "sitting": sitting}

    old = [row("muon", 180, "old"), row("nanogpt", 60, "old"), row("gone", 60, "old"), row("muon", 60, "old")]
    found = merge(old, [row("muon", 60, "new")])
    assert [(one["budget"], one["entry"], one["sitting"]) for one in found] == [
        *((60, "nanogpt", "old"), (60, "muon", "new"), (60, "gone", "old")),
        (180, "muon", "old"),
    ]


def test_entries_take_turns_and_who_is_refused_is_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    order = []

    def fake(path: Path, data: Text, *, seed: int, **more: Any) -> Trial:
        order.append((path.stem, seed))
        if (path.stem, seed) == ("b", 1):
            raise RefusalError("b broke a rule")
        return Trial(float(seed), 1.0, 2.0)

    monkeypatch.setattr(board, "judge", fake)
    found, refused = sit(["a", "b"], DATA, seconds=60, seeds=3, limit=60, cores=2)
    assert order == [("a", 0), ("b", 0), ("a", 1), ("b", 1), ("a", 2)]
    assert [trial.loss for trial in found.pop("a")] == [0.0, 1.0, 2.0]
    assert (found, refused) == ({}, ["b broke a rule"])
    assert "b broke a rule" in capsys.readouterr().out


# --- the entries ---


def load(entry: str) -> ModuleType:
    """Import an entry."""
    spec = importlib.util.spec_from_file_location(f"entry_{entry}", FOLDER / f"{entry}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def copy_weights(theirs: nano_gpt.NanoGPT, ours: DecoderLM) -> None:
    """Give the entry's model the weights of nanoGPT's."""
    pairs = [(ours.embedding.weight, theirs.embedding.weight), (ours.norm.weight, theirs.norm.weight)]
    pairs.append((ours.positions.weight, theirs.positions.weight))
    for layer, block in zip(ours.layers, theirs.blocks, strict=True):
        attention, network = layer.self_attention, layer.feed_forward
        q, k, v = block.qkv.weight.chunk(3)
        pairs += [(attention.w_q.weight, q), (attention.w_k.weight, k), (attention.w_v.weight, v)]
        pairs += [(attention.w_o.weight, block.attention_out.weight)]
        pairs += [(network.w_1.weight, block.up.weight), (network.w_2.weight, block.out.weight)]
        pairs += [(layer.norm_attention.weight, block.norm_1.weight)]
        pairs += [(layer.norm_feed_forward.weight, block.norm_2.weight)]
    assert len(pairs) == len([*ours.parameters()])
    with torch.no_grad():
        for to, what in pairs:
            to.copy_(what)


@pytest.fixture
def double() -> Iterator[None]:
    """Compute in float64."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


@pytest.mark.usefixtures("double")
def test_the_entry_nanogpt_is_nanogpt(tmp_path: Path) -> None:
    entry, tokenizer = load("nanogpt"), CharTokenizer.from_texts(["abcdefgh"])
    torch.manual_seed(0)
    sizes = {"d_model": 12, "n_heads": 3, "n_layers": 2, "context": 7}
    theirs, ours = nano_gpt.NanoGPT(11, **sizes), entry.build(11, **sizes)
    copy_weights(theirs, ours)
    batches = torch.randint(1, 11, (5, 4, 8))

    def same(model: DecoderLM) -> None:
        torch.testing.assert_close(model(batches[0, :, :7]), theirs(batches[0, :, :7]), rtol=1e-9, atol=1e-9)

    same(ours)
    rates = [nano_gpt.LR * 100 * share for share in (0.25, 0.5, 0.75, 1.0, 0.1)]  # large: all parts move
    steps = training_steps(
        ours,
        iter(batches),
        loss_fn=DecoderLM.loss,
        optimizers=[(entry.make_optimizer(ours), lambda step: rates[step - 1])],
        clip_norm=1.0,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nano_gpt, "cosine_schedule", lambda step, **more: rates[step - 1])
        found = [*nano_gpt.training(theirs, iter(batches), steps=5)]
    assert [*steps] == pytest.approx(found, rel=1e-9)
    assert abs(found[-1] - found[0]) > 0.01, "the steps are long enough to tell"
    same(ours)
    entry.fold(ours)
    same(ours)
    save_model(tmp_path, ours, tokenizer, card={})
    same(load_model(tmp_path).model)


def test_the_entry_nanogpt_begins_as_nanogpt() -> None:
    torch.manual_seed(0)
    entry, sizes = load("nanogpt"), {"d_model": 64, "n_heads": 4, "n_layers": 3, "context": 64}
    ours, wanted = entry.build(65, **sizes), entry.build(65, **sizes)
    copy_weights(nano_gpt.NanoGPT(65, **sizes), wanted)
    for (name, own), other in zip(ours.named_parameters(), wanted.parameters(), strict=True):
        if own.ndim == 2:
            assert own.std().item() == pytest.approx(other.std().item(), rel=0.1), name
        else:
            assert torch.equal(own, other), name


def test_a_quick_run_from_end_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CORPORA, "tiny shakespeare", lambda: DATA)
    file = tmp_path / "quick.json"
    kept = {"entry": "gone", "budget": 60}
    file.write_text(json.dumps({"rows": [kept]}), encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["board.py", "--quick", "--json", str(file)])
    threads = torch.get_num_threads()
    try:
        board.main()
    finally:
        torch.set_num_threads(threads)
    found = json.loads(file.read_text(encoding="utf-8"))
    assert found["rows"].pop() == kept
    assert faults(found, FORMS["board"]) == []
    assert [row["entry"] for row in found["rows"]] == [*ENTRIES]
    for row in found["rows"]:
        assert (row["budget"], row["threads"], len(row["losses"])) == (board.QUICK, 1, 2)
        assert all(0 < loss < 5 for loss in row["losses"])
        assert all(0 < seconds < board.PATIENCE for seconds in row["seconds"])
        assert all(seconds > 0.1 for seconds in row["processor_seconds"])
    assert sum(row["record"] for row in found["rows"]) == 1


def test_what_can_t_be_run_is_refused(refusal: Any) -> None:
    assert "--seconds must be at least 1, got 0" in refusal("board", "--seconds", "60", "0")
    assert "nobody" in refusal("board", "--entries", "nobody")
