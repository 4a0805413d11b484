"""Models of the reader's own text: from files to a folder for load_model, or one line that says why not."""

import hashlib
import json
import os
import subprocess
import sys
import threading
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import torch.distributed as dist
from recipe_run import LIBRARY, launch_two

from exformer.cli.main import main
from exformer.corpora.english_italian import split
from exformer.corpora.examples import Pair
from exformer.generation.generate import generate
from exformer.generation.translate import translate
from exformer.hub.pretrained import load_model
from exformer.models.decoder_lm import DecoderLM
from exformer.recipes.datasets import Pairs, Text
from exformer.recipes.evaluate import longest_translation
from exformer.recipes.own_text import read_pairs, read_text, recipe_for
from exformer.recipes.zoo import BYTE_PAIRS, EN_DE_ALONE
from exformer.tokenizers.characters_and_words import WordTokenizer
from exformer.training.distributed import destroy_process_group

SENTENCES = [f"The {n}th key to the cabinet is by the door of the small café.\n" for n in range(60)]


@pytest.fixture
def book(tmp_path: Path) -> Path:
    (tmp_path / "book.txt").write_text("".join(SENTENCES), encoding="utf-8")
    return tmp_path / "book.txt"


@pytest.fixture
def two_files(tmp_path: Path) -> tuple[Path, Path]:
    pairs = split(60, n_test=10, seed=0).train
    paths = tmp_path / "in.txt", tmp_path / "out.txt"
    for path, side in zip(paths, ("source", "target"), strict=True):
        path.write_text("".join(f"{getattr(pair, side)}\n" for pair in pairs), encoding="utf-8")
    return paths


def test_a_language_model(book: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    words = ["train", "--text", str(book), "--out", str(tmp_path / "run"), "--steps", "20", "--seed", "3"]
    assert main(words) == 0
    out, said = capsys.readouterr()
    assert out == ""
    assert said.count("validation loss") == 10
    assert "step 20 of 20: validation loss " in said
    model, tokenizer, card = load_model(tmp_path / "run" / "model")
    assert isinstance(model, DecoderLM)
    assert model.config.begin_id == tokenizer.encode("\n")[0]
    assert (card["recipe"]["corpus"], card["seed"], card["steps"]) == ("own text", 3, 20)
    assert card["history"][-1]["validation_loss"] < card["history"][0]["validation_loss"]
    assert generate(model, tokenizer, "The é", max_new_tokens=5, seed=0)
    assert main(words) == 2
    assert "holds a run: go on with --resume" in capsys.readouterr().err
    assert main([*words, "--resume"]) == 0
    book.write_text("".join(SENTENCES).replace("door", "wall"), encoding="utf-8")
    assert main([*words, "--resume"]) == 2
    assert "the data changed since the run began: bring back what was there" in capsys.readouterr().err


def test_a_translator(two_files: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    source, target = map(str, two_files)
    words = ["train", "--source", source, "--target", target, "--out", str(tmp_path / "run"), "--steps", "3"]
    assert main(words) == 0
    said = capsys.readouterr().err
    held_out = read_pairs(source, target).val
    assert said.count(f"    {held_out[0].source} -> ") == 3
    model, tokenizer, card = load_model(tmp_path / "run" / "model")
    assert card["scores"]["val BLEU, cased"] >= 0
    assert isinstance(translate(model, tokenizer, held_out[0].source), str)


def test_what_is_held_out_is_not_learned(book: Path, two_files: tuple[Path, Path]) -> None:
    text = read_text(book)
    assert text.train + text.val == "".join(SENTENCES)
    assert len(text.val) == len(text.train + text.val) // 10
    for path in two_files:  # every pair twice
        path.write_text(path.read_text(encoding="utf-8") * 2, encoding="utf-8")
    data = read_pairs(*two_files)
    assert len(data.val) == 6
    assert len(data.train) <= 120 - len(data.val)
    assert not set(data.val) & set(data.train)


def test_files_of_other_systems(tmp_path: Path) -> None:
    lines = [f"line {n} of the text" for n in range(60)]
    for name, ends in (("unix", "\n"), ("windows", "\r\n")):
        data = b"\xef\xbb\xbf" * (name == "windows") + "".join(line + ends for line in lines).encode()
        (tmp_path / name).write_bytes(data)
    unix, windows = (read_text(tmp_path / name) for name in ("unix", "windows"))
    assert (unix.train, unix.val) == (windows.train, windows.val)
    found = read_pairs(tmp_path / "unix", tmp_path / "windows")
    assert all(pair.source == pair.target for pair in found.train)
    assert Pair("line 7 of the text", "line 7 of the text") in [*found.train, *found.val]


def test_own_texts_are_normalized(tmp_path: Path) -> None:
    lines = [f"café {n} is here" for n in range(60)]
    odd = [f" cafe\u0301\u200b\t{n}\xa0is\u2028here\x00\u200f" for n in range(60)]
    for name, each in (("plain", lines), ("odd", odd)):
        (tmp_path / name).write_text("\n".join(each), encoding="utf-8", newline="")
    plain, disguised = (read_pairs(tmp_path / name, tmp_path / name) for name in ("plain", "odd"))
    assert (disguised.train, disguised.val) == (plain.train, plain.val)
    text = read_text(tmp_path / "odd")
    assert text.train.startswith(" café\t0\xa0is\u2028here\n café\t1")  # a text keeps its white space


def test_more_text_gets_a_larger_model_and_more_steps() -> None:
    found = [recipe_for(Text("a word " * n, "a word " * 99, {})) for n in (200, 20_000, 200_000, 2_000_000)]
    assert [recipe.model["d_model"] for recipe in found] == [64, 96, 128, 256]
    for small, large in pairwise(found):
        assert small.training.steps <= large.training.steps
        assert small.n_merges < large.n_merges
    pairs = [Pair("one two", "eins zwei")] * 300
    chosen = recipe_for(Pairs(pairs, [Pair("x" * 700, "y" * 10)], (), {}))
    assert chosen.model["max_len"] == 1024  # 701 tokens fit
    assert recipe_for(Pairs(pairs, [Pair("x" * 7, "y" * 127)], (), {})).model["max_len"] == 128
    assert recipe_for(Pairs(pairs, [Pair("x" * 7, "y" * 128)], (), {})).model["max_len"] == 256


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"too short", "book.txt has 9 characters: expected at least 1,000 to learn from"),
        (b"one\ntwo \xff three\n" * 200, "book.txt, line 2: expected text in UTF-8, got the byte 0xff: save"),
        (None, "No such file or directory: "),
        ("\u200b".encode() * 3000, "book.txt has 0 characters: expected at least 1,000 to learn from"),
        (b"\0" * 5000, "book.txt: expected text in UTF-8, got UTF-16: save the text as UTF-8"),
        ("one\ntwo\n".encode("utf-16-le") * 200, "book.txt: expected text in UTF-8, got UTF-16: save"),
        (b"one\rtwo\r" * 200, "book.txt: its lines end with CR alone, expected LF or CRLF: convert"),
    ],
)
def test_texts_that_cannot_be_learned(
    tmp_path: Path, capsys: pytest.CaptureFixture, content: bytes | None, message: str
) -> None:
    path = tmp_path / "book.txt"
    if content is not None:
        path.write_bytes(content)
    assert main(["train", "--text", str(path), "--out", str(tmp_path / "run")]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ("a\n" * 30, "b\n" * 29, "in.txt has 30 lines and {}/out.txt 29: expected a sentence in each line"),
        ("a\n" * 19, "b\n" * 19, "in.txt has 19 lines: expected at least 20 to learn from"),
        ("a\n" * 9 + " \n" + "a\n" * 20, "b\n" * 30, "in.txt, line 10 is empty: expected a sentence"),
        ("a\n" * 30, "b\n" * 29 + "b" * 2001, "out.txt, line 30 has 2,001 bytes: expected a sentence of at"),
        ("", "", "in.txt, line 1 is empty"),
        ("a\n" * 9 + "\u200b\xad\n" + "a\n" * 20, "b\n" * 30, "in.txt, line 10 is empty: expected a sen"),
    ],
)
def test_pairs_that_cannot_be_learned(
    tmp_path: Path, capsys: pytest.CaptureFixture, source: str, target: str, message: str
) -> None:
    (tmp_path / "in.txt").write_text(source)
    (tmp_path / "out.txt").write_text(target)
    words = ["--source", str(tmp_path / "in.txt"), "--target", str(tmp_path / "out.txt")]
    assert main(["train", *words, "--out", str(tmp_path / "run")]) == 2
    assert message.replace("{}", str(tmp_path)) in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["multi30k-en-de", "--text", "x"],
        ["--source", "x"],
        ["--target", "x"],
        ["--text", "x", "--target", "x"],
    ],
)
def test_one_thing_is_learned(tmp_path: Path, capsys: pytest.CaptureFixture, words: list[str]) -> None:
    assert main(["train", *words, "--out", str(tmp_path / "run")]) == 2
    said = capsys.readouterr().err
    assert "give one of: a RECIPE, --text FILE, or --source FILE with --target FILE" in said


def test_a_device_that_is_not_there(
    book: Path, tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    words = ["train", "--text", str(book), "--out", str(tmp_path / "run")]
    assert main([*words, "--device", "cuda"]) == 2
    assert "PyTorch finds no CUDA device here: leave --device out" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([*words, "--device", "abacus"])
    assert "argument --device: invalid choice: 'abacus'" in capsys.readouterr().err


def test_accelerate_starts_the_command(book: Path, tmp_path: Path) -> None:
    words = ["train", "--text", str(book), "--out", str(tmp_path / "run"), "--steps", "4"]
    done = launch_two("-m", "exformer", *words)
    assert done.stderr.count("step 4 of 4: validation loss") == 1  # the main process alone speaks
    lines = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [1, 2, 3, 4]
    assert load_model(tmp_path / "run" / "model").card["steps"] == 4


def test_the_command_leaves_the_other_processes_when_it_ends(book: Path, tmp_path: Path) -> None:
    dist.init_process_group("gloo", init_method=f"file://{tmp_path / 'met'}", rank=0, world_size=1)
    try:
        assert main(["train", "--text", str(book), "--out", str(tmp_path / "run"), "--steps", "4"]) == 0
        assert not dist.is_initialized()
    finally:
        destroy_process_group()


def test_merges_are_counted_from_both_sides():
    pairs = [Pair("s" * 300, "t" * 10)] * 400
    assert recipe_for(Pairs(pairs, [], [], {})).n_merges == 400 * 310 // 1000


def test_a_recipe_by_hand() -> None:
    base = BYTE_PAIRS
    small = recipe_for(Text("a" * 50_000, "b" * 999, {}))
    assert small.model == base.model | {"d_model": 64, "n_heads": 2, "n_layers": 2, "d_ff": 256}
    assert (small.name, small.corpus, small.n_merges, small.tokens) == ("own text", "own text", 50, 2048)
    assert small.training == replace(base.training, steps=150, warmup=15, eval_interval=15, average_last=1)
    assert recipe_for(Text("a" * 50_001, "", {})).model["d_model"] == 96
    for n_bytes, steps in ((1_000_000, 1953), (2_000_000, 3906)):  # 8 passes, two bytes a token
        assert recipe_for(Text("a" * n_bytes, "", {})).training.steps == steps
    large = recipe_for(Text("a" * 10_000_001, "", {}))
    assert large.model == base.model | {
        "d_model": 256, "n_heads": 8, "n_layers": 6, "d_ff": 1024, "max_len": 256, "dropout": 0.1,
    }  # fmt: skip
    assert (large.n_merges, large.tokens) == (8000, 4 * 2048)
    base, large = base.training, large.training
    assert large.steps == 8 * 10_000_001 // 2 // (4 * 2048)
    assert (large.lr, large.muon_lr) == (base.lr / 2, base.muon_lr / 2)
    assert large.lr_by_module == {"output": base.lr_by_module["output"] / 2}
    assert (large.warmup, large.eval_interval) == (base.warmup, -(-large.steps // 10))
    assert recipe_for(Text("a" * 20_000_001, "", {}), steps=25_000).training.steps == 25_000
    short = recipe_for(Text("a" * 5000, "", {}), steps=9).training
    assert (short.steps, short.warmup, short.eval_interval) == (9, 1, 1)


class Long(str):
    """A text that says it is longer than it is."""

    def encode(self) -> range:
        return range(self.n_bytes)


@pytest.mark.parametrize(
    ("n_bytes", "sizes", "steps"),
    [
        (500_000, (96, 3, 3), 8 * 500_000 // 2 // 2048),
        (500_001, (128, 4, 4), 8 * 500_001 // 2 // 2048),
        (10_000_000, (128, 4, 4), 8 * 10_000_000 // 2 // 2048),
        (100_000_000, (256, 8, 6), 20_000),
        (100_000_001, (512, 8, 8), 20_000),
    ],
)
def test_sizes_and_steps_by_the_bytes_of_a_text(n_bytes: int, sizes: tuple[int, ...], steps: int) -> None:
    text = Long()
    text.n_bytes = n_bytes
    found = recipe_for(Text(text, "", {}))
    assert tuple(found.model[name] for name in ("d_model", "n_heads", "n_layers")) == sizes
    assert found.training.steps == steps
    assert found.n_merges == min(n_bytes // 1000, 8000)


def test_a_recipe_for_pairs_counts_the_targets_of_all_pairs() -> None:
    train, val = [Pair("s" * 9, "t" * 1000)] * 49, [Pair("s" * 99, "t" * 1000)]
    found = recipe_for(Pairs(train, val, (), {}))
    assert found.model["d_model"] == 64
    assert found.n_merges == (50_000 + 49 * 9 + 99) // 1000
    steps = 20 * 50_000 // 2 // EN_DE_ALONE.tokens
    assert (found.training.average_last, found.training.eval_interval, found.training.steps) == (3, 25, steps)
    assert recipe_for(Pairs(train, [*val, Pair("s", "t")], (), {})).model["d_model"] == 96


def test_texts_at_their_bounds(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("é" * 1000, encoding="utf-8")
    assert len(read_text(path).val) == 100
    path.write_text("a" * 2_000_010)
    assert len(read_text(path).val) == 200_000  # no more is held out
    path.write_text("é" * 1000 + "\n" + "b\n" * 20, encoding="utf-8")  # 2,000 bytes are short enough
    data = read_pairs(path, path)
    assert (len(data.val), len([pair for pair in data.train if pair.target != "b"])) == (2, 1)
    path.write_text("".join(f"{n}\n" for n in range(20)))  # 20 pairs are enough
    assert len(read_pairs(path, path).val) == 1
    path.write_text("a\n" * 19)
    with pytest.raises(ValueError, match="has 19 lines: expected at least 20 to learn from"):
        read_pairs(path, path)
    path.write_text("".join(f"{n}\n" for n in range(10_040)))
    data = read_pairs(path, path)
    assert (len(data.val), len(data.train)) == (500, 9540)
    numbers = [int(pair.source) for pair in data.val]
    assert numbers == sorted(numbers)


@pytest.mark.parametrize(
    ("last", "message"),
    [
        ("\n", "line 31 is empty"),
        ("", "are alike, so that all are held out: expected pairs that differ"),
    ],
)
def test_pairs_that_cannot_be_learned_from(tmp_path: Path, last: str, message: str) -> None:
    (tmp_path / "text").write_text("a\n" * 30 + last)
    with pytest.raises(ValueError, match=message):
        read_pairs(tmp_path / "text", tmp_path / "text")


def run_command(*words: str, **options: object) -> subprocess.CompletedProcess:
    """Run ``exformer`` in a process of its own."""
    environment = os.environ | {"PYTHONPATH": LIBRARY}
    return subprocess.run([sys.executable, "-m", "exformer", *words], env=environment, **options)


@pytest.mark.parametrize("end", ["closed pipe", "full disk"])
def test_a_training_outlives_its_standard_error(book: Path, tmp_path: Path, end: str) -> None:
    words = ["train", "--text", str(book), "--out", str(tmp_path / "run"), "--steps", "4"]
    if end == "full disk":
        if not Path("/dev/full").exists():
            pytest.skip("no /dev/full")
        with Path("/dev/full").open("wb") as stderr:
            done = run_command(*words, stderr=stderr)
    else:
        reader, writer = os.pipe()
        os.close(reader)
        done = run_command(*words, stderr=writer)
        os.close(writer)
    assert done.returncode == 0
    assert load_model(tmp_path / "run" / "model").card["steps"] == 4


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are of POSIX")
def test_a_text_from_a_pipe_is_read_once(book: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(book.read_bytes()))
    writer.start()
    data = read_text(pipe)
    writer.join()
    assert data == read_text(book)
    assert data.hashes == {"text": hashlib.sha256(book.read_bytes()).hexdigest()}


def resume(book: Path, tmp_path: Path, *words: str) -> int:
    return main(["train", "--text", str(book), "--out", str(tmp_path / "run"), "--resume", *words])


def test_a_resumed_command_keeps_the_settings_of_its_run(
    book: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    begun = ["--steps", "6", "--seed", "3", "--lr", "0.01", "--d-model", "32", "--batch", "500"]
    assert resume(book, tmp_path, *begun) == 0
    card = load_model(tmp_path / "run" / "model").card
    assert (card["config"]["d_model"], card["config"]["d_ff"], card["recipe"]["tokens"]) == (32, 128, 500)
    capsys.readouterr()
    assert resume(book, tmp_path) == 0
    assert (
        capsys.readouterr().err
        == f"{tmp_path}/run holds a finished run: its model is in {tmp_path}/run/model\n"
    )
    assert resume(book, tmp_path, "--lr", "0.01", "--d-model", "32") == 0
    assert resume(book, tmp_path, "--lr", "0.02") == 2
    assert "a run of another recipe, which differs in lr (0.01, now 0.02), " in capsys.readouterr().err
    assert resume(book, tmp_path, "--steps", "9") == 0
    assert "step 9 of 9: validation loss" in capsys.readouterr().err
    longer = load_model(tmp_path / "run" / "model").card
    assert (longer["steps"], longer["recipe"]["training"]["seed"]) == (9, 3)
    lines = (tmp_path / "run" / "log.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == list(range(1, 10))
    assert resume(book, tmp_path, "--steps", "8") == 2
    assert "the run has taken 9 steps already, got steps=8" in capsys.readouterr().err


def test_a_damaged_model_is_made_again(book: Path, tmp_path: Path) -> None:
    assert resume(book, tmp_path, "--steps", "4") == 0
    path = tmp_path / "run" / "model" / "model.safetensors"
    before = path.read_bytes()
    for left in (None, before[:1000]):
        path.unlink() if left is None else path.write_bytes(left)
        assert resume(book, tmp_path) == 0
        assert path.read_bytes() == before


def test_a_run_without_a_step_leaves_no_folder(
    book: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    uniform = tmp_path / "uniform.txt"
    uniform.write_text("a" * 50_000)
    words = ["train", "--out", str(tmp_path / "run"), "--steps", "4"]
    assert main([*words, "--text", str(uniform)]) == 2
    assert "tokens, expected more than the model's context of 64: it is too short" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "mine.txt").touch()
    assert main([*words, "--text", str(uniform)]) == 2
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["mine.txt"]
    assert main([*words, "--text", str(book)]) == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--steps", "1"], "--steps must be at least 2, got 1"),
        (["--lr", "nan"], "lr must be a number of at least 0, got nan"),
        (["--n-heads", "5"], "n_heads"),
        (["--out", "book.txt"], "is or lies in a file, or is a link that leads nowhere: expected a folder"),
        (["--out", "x\udcff"], "expected the name of a folder for the run in UTF-8, got 'x"),
    ],
)
def test_mistakes_before_a_training(
    book: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
    words: list,
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["train", "--text", str(book), "--out", "run", *words]) == 2
    assert message in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["book.txt"]


def test_one_file_is_no_translation(book: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    words = [
        "train",
        "--source",
        str(book),
        "--target",
        f"{tmp_path}/./book.txt",
        "--out",
        str(tmp_path / "run"),
    ]
    assert main(words) == 2
    assert "--source and --target name one file: expected sentences, and their" in capsys.readouterr().err


def test_samples_of_an_untrained_translator_are_short() -> None:
    pairs = [Pair("s " * 900, "t"), Pair("s", "t t t")]
    assert longest_translation(pairs, WordTokenizer.from_texts(["s t"])) == 2 * 3 + 50
