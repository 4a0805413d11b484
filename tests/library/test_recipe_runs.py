"""Runs of recipes: cut, killed or shared, they end at the same weights; the folder says how it was done."""

import json
import math
import multiprocessing
import platform
import random
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from recipe_run import SIZES, TINY, changed, launch_two, run_code, train
from safetensors.torch import load_file
from test_corpora_real import needs_multi30k

from exformer.cli.main import main
from exformer.corpora.examples import Pair
from exformer.evaluation.metrics import corpus_bleu
from exformer.generation.translate import translate
from exformer.hub.pretrained import load_model
from exformer.models.decoder_lm import DecoderLM, DecoderLMConfig
from exformer.recipes import RECIPES, Recipe
from exformer.recipes.datasets import CORPORA, Pairs, Text
from exformer.recipes.evaluate import judge, prepare, score, tokenize_for_papers
from exformer.recipes.run import run_recipe
from exformer.recipes.run_folder import RunFolder
from exformer.recipes.task import learn_tokenizer, make_task, validation_batches
from exformer.tokenizers.bpe import BPETokenizer
from exformer.tokenizers.characters_and_words import CharTokenizer, WordTokenizer
from exformer.tokenizers.loading import load_tokenizer
from exformer.training.checkpoint import average_weights, checkpoint_path, find_checkpoints
from exformer.training.log import TrainingLog

# Without chance. Some gradients are longer than the limit: AdamW alone would not mind a multiple of them all.
STILL = {"model": {**SIZES, "dropout": 0.0}, "clip_norm": 0.7}
TEXT = "the keys to the cabinet are on the table, and the cabinet is by the door. " * 40


def log(folder: Path, name: str = "loss") -> list[float]:
    """Return what the log of a run says of each step, once it is known that no step is missing or twice."""
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == list(range(1, len(lines) + 1))
    return [line[name] for line in lines if name in line]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run that nobody cut."""
    folder = tmp_path_factory.mktemp("whole")
    train(folder)
    return folder


def test_the_folder_says_how_it_was_done(whole: Path) -> None:
    found = load_model(whole / "model")
    assert sum(log(whole)[-3:]) / 3 < log(whole)[0] - 1
    assert len(log(whole, "validation_loss")) == 4
    card = found.card
    assert card["recipe"] == json.loads((whole / "recipe.json").read_text())
    assert card["recipe"]["training"]["steps"] == card["steps"] == 12
    assert {len(sha) for sha in card["data"].values()} == {64}
    assert card["parameters"] == sum(p.numel() for p in found.model.parameters())
    assert card["training"]["processor_seconds"] > 0
    assert card["machine"]["torch"] == torch.__version__
    assert set(card["scores"]) == {"validation loss, nats per token", "val BLEU, cased", "signatures"}
    assert "tok:13a" in card["scores"]["signatures"]["val BLEU, cased"]
    assert [line["step"] for line in card["history"]] == [3, 6, 9, 12]
    assert [line["validation_loss"] for line in card["history"]] == log(whole, "validation_loss")
    assert 0 < card["scores"]["validation loss, nats per token"] < 7
    assert len(translate(found.model, found.tokenizer, [CORPORA[TINY.corpus]().test[0].source])) == 1


def test_the_model_is_the_mean_of_the_last_checkpoints(whole: Path) -> None:
    last = find_checkpoints(whole / "checkpoints")
    assert [path.stem for path in last] == ["step_00000009", "step_00000012"]
    assert load_model(whole / "model").card["mean_of"] == [path.stem for path in last]
    mean, model = average_weights(last), load_file(whole / "model" / "model.safetensors")
    assert all(torch.equal(model[name], value.half()) for name, value in mean.items())


def test_a_model_is_judged_from_its_weights_alone(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    card = load_model(whole / "model").card
    found = judge(prepare(whole / "model"))
    assert found["recipe"] == TINY.name
    assert set(found["scores"]) == {"validation loss, nats per token", "val BLEU, cased", "test BLEU, cased"}
    for name in ("validation loss, nats per token", "val BLEU, cased"):
        assert found["scores"][name] == card["scores"][name]
    data = CORPORA[TINY.corpus]()
    model = load_model(whole / "model")
    ours = translate(model.model, model.tokenizer, [pair.source for pair in data.test])
    wanted = corpus_bleu(ours, [pair.target for pair in data.test])
    assert found["scores"]["test BLEU, cased"] == pytest.approx(wanted, abs=0.006)
    assert main(["bench", str(whole / "model"), "--json", str(tmp_path / "scores.json")]) == 0
    (written,) = json.loads((tmp_path / "scores.json").read_text(encoding="utf-8"))
    assert written["scores"] == found["scores"]
    assert f"test BLEU, cased: {found['scores']['test BLEU, cased']}\n" in capsys.readouterr().out


def with_card(whole: Path, folder: Path, **changes: object) -> Path:
    """Copy the model of a run, with another card."""
    shutil.copytree(whole / "model", folder / "model")
    card = json.loads((folder / "model" / "model.json").read_text()) | changes
    (folder / "model" / "model.json").write_text(json.dumps(card))
    return folder / "model"


@pytest.mark.parametrize(
    "recipe",
    [
        None,
        {"name": "x"},
        TINY.settings() | {"corpus": "nowhere"},
        TINY.settings() | {"corpus": ["x"]},
        TINY.settings() | {"model": ["x"]},
        TINY.settings() | {"model": {**SIZES, "wings": 2}},
    ],
)
def test_a_card_without_a_recipe_cannot_be_judged(whole: Path, tmp_path: Path, recipe: object) -> None:
    folder = with_card(whole, tmp_path, recipe=recipe)
    with pytest.raises(ValueError, match="model: the card's recipe can't be followed: "):
        prepare(folder)


def test_the_loaded_model_is_judged_whatever_its_recipe_makes(whole: Path, tmp_path: Path) -> None:
    wanted = judge(prepare(whole / "model"))["scores"]
    for name, value in (("n_heads", 4), ("d_model", 8), ("max_len", 4)):
        other = TINY.settings() | {"model": {**SIZES, name: value}}
        assert judge(prepare(with_card(whole, tmp_path / name, recipe=other)))["scores"] == wanted


def test_what_cannot_be_judged_is_found_before_it_is_scored(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("exformer.recipes.evaluate.score", lambda *given, **options: pytest.fail("scored"))
    monkeypatch.setitem(CORPORA, "keys", lambda: Text(TEXT, TEXT, {}))
    folder = with_card(whole, tmp_path / "text", recipe=TINY.settings() | {"corpus": "keys"})
    with pytest.raises(ValueError, match=r"the corpus keys .* kind DecoderLM, the model is of kind EncoderD"):
        prepare(folder)
    for name in ("parameters", "training"):
        folder = with_card(whole, tmp_path / name, **{name: None})
        with pytest.raises(ValueError, match=f"model: the card lacks {name}: expected that of a run"):
            prepare(folder)
    folder = with_card(whole, tmp_path / "two")
    words = json.loads((folder / "tgt_tokenizer.json").read_text())
    words["symbols"].reverse()
    (folder / "tgt_tokenizer.json").write_text(json.dumps(words))
    with pytest.raises(ValueError, match="one tokenizer for both languages, the model has two"):
        prepare(folder)
    words["symbols"].reverse()
    val = [pair.target.split() for pair in CORPORA[TINY.corpus]().val]
    one, two = (words["symbols"].index(word) for word in val[0][:2])  # in this sentence, and not in each
    assert any(not {*val[0][:2]} & {*text} for text in val)
    words["symbols"][one], words["symbols"][two] = words["symbols"][two], words["symbols"][one]
    (folder / "tgt_tokenizer.json").write_text(json.dumps(words))
    with pytest.raises(ValueError, match="one tokenizer for both languages, the model has two"):
        prepare(folder)


def assert_same_run(found: Path, wanted: Path) -> None:
    """Compare two runs bit by bit."""
    for name in ("model/model.safetensors", "tokenizer.json"):
        assert (found / name).read_bytes() == (wanted / name).read_bytes()
    assert log(found) == log(wanted)
    assert log(found, "validation_loss") == log(wanted, "validation_loss")


def test_a_run_that_was_cut_goes_on(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    append = TrainingLog.append
    for cut in (5, 9, 11):  # the second one after a checkpoint is due, and before it is written

        def stop(log: TrainingLog, line: dict, cut: int = cut) -> None:
            append(log, line)
            if line["step"] == cut:
                raise KeyboardInterrupt

        monkeypatch.setattr(TrainingLog, "append", stop)
        with pytest.raises(KeyboardInterrupt):
            train(tmp_path)
    monkeypatch.undo()
    train(tmp_path)
    assert_same_run(tmp_path, whole)


def test_killed_at_any_moment(whole: Path, tmp_path: Path) -> None:
    """Kill a run at steps, at checkpoints and while it finishes; the end has the same bits."""
    fork = "forkserver" in multiprocessing.get_all_start_methods()
    processes = multiprocessing.get_context("forkserver" if fork else "spawn")
    if fork:
        processes.set_forkserver_preload(["torch._dynamo", "accelerate", "recipe_run"])
    moments = random.Random(0)
    file = tmp_path / "log.jsonl"
    for aim in (2, 7, 12):
        process = processes.Process(target=train, args=(tmp_path,))
        process.start()
        while process.is_alive() and (not file.exists() or file.read_text().count("\n") < aim):
            time.sleep(0.002)
        time.sleep(moments.uniform(0.0, 0.02))
        assert process.is_alive()
        process.kill()
        process.join()
    assert not (tmp_path / "model" / "model.json").exists()
    process = processes.Process(target=train, args=(tmp_path,))
    process.start()
    process.join(120)
    assert process.exitcode == 0
    assert_same_run(tmp_path, whole)


def test_time_goes_on_where_a_run_was_cut(whole: Path, tmp_path: Path) -> None:
    seconds = log(whole, "processor_seconds")
    assert seconds == sorted(seconds)
    train(tmp_path, steps=12, patience=1, lr=0.0)  # ends at step 6: nothing becomes better
    assert len(log(tmp_path)) == 6
    (tmp_path / "model" / "model.json").unlink()
    before = log(tmp_path, "processor_seconds")
    train(tmp_path, steps=12, patience=1, lr=0.0)  # nothing is left to do but to finish
    assert log(tmp_path, "processor_seconds") == before
    card = load_model(tmp_path / "model").card
    assert card["steps"] == 6
    assert card["training"]["processor_seconds"] >= before[-1]


def test_one_process_at_a_time(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole, tmp_path / "run")
    code = f"""
from pathlib import Path
from recipe_run import train
try:
    train(Path({str(tmp_path / "run")!r}))
except ValueError as error:
    print(error)
"""
    with RunFolder(tmp_path / "run").lock():
        said = run_code(code)
    assert "another process trains in " in said
    train(tmp_path / "run")  # the place is free again


def test_a_log_that_lost_lines_is_mended(whole: Path, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    lines = (whole / "log.jsonl").read_text().splitlines()
    half = lines[4][:20]
    path.write_text("\n".join([*lines[:4], half + lines[5], "[" * 100_000, *lines[6:10], half]))
    kept = TrainingLog(path).cut(done=8)
    assert [line["step"] for line in kept] == [1, 2, 3, 4, 7, 8]
    assert [json.loads(line) for line in path.read_text().splitlines()] == kept
    path.write_bytes(b"\xff")
    with pytest.raises(
        ValueError, match=r"log\.jsonl is not the log of a run: expected JSON .*; delete it to go"
    ):
        TrainingLog(path).cut(done=8)


def test_a_start_that_failed_is_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_network() -> None:
        raise ConnectionError("could not fetch")

    with monkeypatch.context() as changes:
        changes.setitem(CORPORA, TINY.corpus, no_network)
        with pytest.raises(ConnectionError):
            run_recipe(changed(TINY, steps=3), tmp_path / "run")
    run_recipe(changed(TINY, steps=3), tmp_path / "run")


def test_a_finished_run_is_left_alone(whole: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (whole / "model").iterdir()}
    assert train(whole) == whole / "model"
    assert {path: path.stat().st_mtime_ns for path in (whole / "model").iterdir()} == before


def test_other_seeds_have_other_weights(whole: Path, tmp_path: Path) -> None:
    train(tmp_path, seed=1, steps=3)
    assert log(tmp_path)[0] != log(whole)[0]


def test_a_batch_in_parts_is_the_batch(tmp_path: Path) -> None:
    for name, parts in (("one", 1), ("three", 3)):
        train(tmp_path / name, accumulate=parts, **STILL)
    assert log(tmp_path / "three") == pytest.approx(log(tmp_path / "one"), rel=1e-5)


def test_two_processes_are_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin a run in one process, go on in two, and end it in one: the weights are those of one process."""
    one, mixed = tmp_path / "one", tmp_path / "mixed"
    append = TrainingLog.append

    def stop(log: TrainingLog, line: dict) -> None:
        append(log, line)
        if line["step"] == 7:
            raise KeyboardInterrupt

    def assert_same(step: int) -> None:
        found, wanted = (
            average_weights([checkpoint_path(folder / "checkpoints", step)]) for folder in (mixed, one)
        )
        for name, value in wanted.items():
            assert value.dtype == torch.float64
            torch.testing.assert_close(found[name], value, atol=1e-10, rtol=0)

    torch.set_default_dtype(torch.float64)
    try:
        train(one, **STILL)
        with monkeypatch.context() as changes:
            changes.setattr(TrainingLog, "append", stop)
            with pytest.raises(KeyboardInterrupt):
                train(mixed, **STILL)
        script = str(Path(__file__).with_name("recipe_run.py"))
        done = launch_two(script, str(mixed), json.dumps(STILL | {"float64": True}))
        assert sorted(done.stdout.split()) == ["0/2", "1/2"]
        for step in (9, 12):
            assert_same(step)
        checkpoint_path(mixed / "checkpoints", 12).unlink()
        shutil.rmtree(mixed / "model")
        train(mixed, **STILL)
        assert_same(12)
    finally:
        torch.set_default_dtype(torch.float32)
    assert log(mixed) == pytest.approx(log(one), abs=1e-10)
    assert log(mixed, "validation_loss") == pytest.approx(log(one, "validation_loss"), abs=1e-10)


def test_half_precision_is_near(whole: Path, tmp_path: Path) -> None:
    train(tmp_path, precision="bf16")
    assert log(tmp_path) == pytest.approx(log(whole), rel=0.02)
    assert log(tmp_path) != log(whole)


def test_muon_moves_the_layers(tmp_path: Path) -> None:
    train(tmp_path, optimizer="muon", lr=0.003, steps=6)
    assert log(tmp_path)[-1] < log(tmp_path)[0]


@pytest.mark.parametrize("tokenizer", ["character", "byte-pair"])
def test_a_language_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tokenizer: str) -> None:
    cut = len(TEXT) * 9 // 10
    monkeypatch.setitem(CORPORA, "keys", lambda: Text(TEXT[:cut], TEXT[cut:], {"keys": "0" * 64}))
    sizes = {"d_model": 16, "n_heads": 2, "d_ff": 32, "n_layers": 1, "max_len": 16, "dropout": 0.0}
    changes = {"model": sizes, "tokenizer": tokenizer, "n_merges": 20, "schedule": "cosine", "steps": 30}
    recipe = changed(TINY, corpus="keys", eval_interval=15, lr=0.02, **changes)
    run_recipe(recipe, tmp_path)
    first = load_tokenizer(tmp_path / "tokenizer.json").encode(TEXT)[0]
    assert load_model(tmp_path / "model").model.config.begin_id == first
    scores = load_model(tmp_path / "model").card["scores"]
    assert scores["validation bits per byte"] < 3.5  # the letters alone have 3.6
    assert log(tmp_path, "validation_loss")[-1] < log(tmp_path)[0]


@pytest.mark.parametrize(
    "data",
    [
        Text("ab" * 9, "cd" * 99, {}),
        Pairs([Pair("ab", "ab")], [Pair("cd" * 99, "cd")], [Pair("cd", "cd" * 99)], {}),
    ],
    ids=["text", "pairs"],
)
def test_byte_pairs_are_learned_from_the_training_texts_alone(tmp_path: Path, data: Text | Pairs) -> None:
    recipe = changed(TINY, tokenizer="byte-pair", n_merges=1)
    tokenizer = learn_tokenizer(recipe, data, tmp_path / "tokenizer.json")
    assert [tokenizer.tokens[index] for index in tokenizer.encode("abcd")] == [b"ab", b"c", b"d"]


def test_characters_are_learned_from_the_validation_text_too(tmp_path: Path) -> None:
    recipe = changed(TINY, tokenizer="character")
    tokenizer = learn_tokenizer(recipe, Text("ab", "cd", {}), tmp_path / "tokenizer.json")
    assert tokenizer.decode(tokenizer.encode("abcd")) == "abcd"


@pytest.mark.parametrize(("train", "first"), [("ab\nab\n" * 9, "\n"), ("bab" * 9, "b")])
def test_a_text_begins_after_a_line_break_where_there_are_some(train: str, first: str) -> None:
    data, tokenizer = Text(train, train, {}), CharTokenizer.from_texts(["ab\n"])
    sizes = {"d_model": 4, "n_heads": 1, "d_ff": 4, "n_layers": 1, "max_len": 8}
    task = make_task(changed(TINY, corpus="keys", model=sizes, tokens=3), data, tokenizer)
    assert [task.model.config.begin_id] == tokenizer.encode(first)
    assert task.batches.batch_size == 1  # a window is longer than the tokens of a batch


def test_a_sentence_as_long_as_the_model_reads_and_no_longer() -> None:
    data = Pairs([Pair("a", "a"), Pair("a b", "b")], [Pair("a", "a")], [Pair("a", "a")], {})
    tokenizer = WordTokenizer.from_texts(["a b"])
    for max_len in (3, 2):  # two words and the end
        recipe = changed(TINY, model={**SIZES, "max_len": max_len})
        if max_len == 3:
            make_task(recipe, data, tokenizer)
        else:
            with pytest.raises(ValueError, match="a sentence has 3 tokens, the recipe's model max_len 2"):
                make_task(recipe, data, tokenizer)


def test_papers_cut_the_test_set_alone_and_do_it_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [Pair("a b", "B a."), Pair("b", "b")]
    data = Pairs(pairs, pairs[:1], pairs, {}, language="de", references=["b a .", "b"])
    tokenizer, asked = WordTokenizer.from_texts(["a b B a."]), []

    def cut(texts: list[str], *, language: str) -> list[str]:
        asked.append((texts, language))
        return data.references

    monkeypatch.setattr("exformer.recipes.evaluate.translate", lambda *given, **how: ["B a."] * len(given[2]))
    monkeypatch.setattr("exformer.recipes.evaluate.tokenize_for_papers", cut)
    task = make_task(TINY, data, tokenizer)
    found = score(task.model.eval(), task.tokenizer, data, TINY, parts=("val", "test"))
    assert asked == [(["B a.", "B a."], "de")]
    cased, cut_by_them = (found["signatures"][f"test BLEU, {name}"] for name in ("cased", "lower-cased"))
    assert "tok:13a" in cased
    assert "tok:none" in cut_by_them


def test_bits_are_counted_per_byte_and_not_per_character() -> None:
    data = Text(TEXT, "the kéy is ön the täble. " * 9, {})
    config = DecoderLMConfig(6, d_model=4, n_heads=1, d_ff=4, n_layers=1, max_len=8)
    tokenizer = BPETokenizer.from_texts([TEXT], n_merges=3)
    model = DecoderLM(replace(config, vocab_size=tokenizer.vocab_size)).eval()
    found = score(model, tokenizer, data, changed(TINY, corpus="keys"))
    nats, n_tokens = found["validation loss, nats per token"], len(tokenizer.encode(data.val))
    assert len(data.val.encode()) == len(data.val) + 3 * 9
    wanted = nats / math.log(2) * n_tokens / (len(data.val) + 3 * 9)
    assert found["validation bits per byte"] == pytest.approx(wanted, abs=1e-3)


def test_validation_batches_count_by_their_tokens() -> None:
    data = CORPORA[TINY.corpus]()
    more = replace(data, val=[*data.train[:700], *data.val])
    tokenizer = WordTokenizer.from_texts([text for pair in data.train for text in (pair.source, pair.target)])
    parts = validation_batches(TINY, more, tokenizer, max_len=32)
    counts = [int((part.batch.tgt_out != tokenizer.pad_id).sum()) for part in parts]
    assert len(set(counts)) > 1
    assert [part.weight for part in parts] == pytest.approx([count / sum(counts) for count in counts])
    assert sum(counts) == sum(len(tokenizer.encode(pair.target)) + 1 for pair in more.val)


@pytest.mark.parametrize("n", [9, 16, 17, 18, 5001])
def test_validation_windows_stand_side_by_side_to_the_end(n: int) -> None:
    text = (TEXT * (n // len(TEXT) + 1))[:n]
    tokenizer = CharTokenizer.from_texts([TEXT])
    parts = validation_batches(TINY, Text(TEXT, text, {}), tokenizer, max_len=8)
    read = torch.cat([part.batch[:, :-1].flatten() for part in parts]).tolist()
    predicted = torch.cat([part.batch[:, 1:].flatten() for part in parts]).tolist()
    ids, whole_windows = tokenizer.encode(text), (n - 1) // 8 * 8
    assert (read, predicted) == (ids[:whole_windows], ids[1 : whole_windows + 1])
    assert [part.weight for part in parts] == [part.batch[:, 1:].numel() / whole_windows for part in parts]
    assert len(parts) == (1 if n < 5001 else 2)


def test_mistakes(whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(ValueError, match="holds a run: go on with --resume, or choose another folder"):
        run_recipe(TINY, whole)
    with pytest.raises(ValueError, match=r"another recipe, which differs in lr \(0\.01, now 0\.5\): choose"):
        train(whole, steps=13, lr=0.5)
    with pytest.raises(ValueError, match=r"a sentence has \d+ tokens, the recipe's model max_len 4"):
        train(tmp_path / "long", model={**SIZES, "max_len": 4})
    with pytest.raises(ValueError, match=r"loss is nan .*: lower the learning rate"):
        train(tmp_path / "wild", lr=1e30, steps=1)
    assert not find_checkpoints(tmp_path / "wild" / "checkpoints")
    (tmp_path / "bad").mkdir()
    for damaged in ("[", "[" * 100_000):
        (tmp_path / "bad" / "recipe.json").write_text(damaged)
        with pytest.raises(ValueError, match=r"recipe\.json is not the recipe of a run: expected JSON"):
            train(tmp_path / "bad")
    assert main(["train", "multi30k-en-d", "--out", str(tmp_path / "new")]) == 2
    assert "there is no recipe 'multi30k-en-d' (close: multi30k-en-de)" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "part", ["tokenizer.json", "log.jsonl", "translations.json", "checkpoints/x", "model/x"]
)
def test_parts_of_a_run_without_its_recipe_are_not_used(tmp_path: Path, part: str) -> None:
    (tmp_path / part).parent.mkdir(exist_ok=True)
    (tmp_path / part).touch()
    for resume in (False, True):
        with pytest.raises(
            ValueError, match=r"holds parts of a run without its recipe\.json: choose another"
        ):
            run_recipe(TINY, tmp_path, resume=resume)
    assert not (tmp_path / "recipe.json").exists()


def test_a_folder_without_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="expected the name of a folder for the run, got an empty one"):
        run_recipe(TINY, "")
    assert not list(tmp_path.iterdir())


def test_what_a_killed_process_has_written_in_part_goes(tmp_path: Path) -> None:
    place = RunFolder(tmp_path)
    place.checkpoints.mkdir()
    place.model.mkdir()
    ours, kept = "exformer-0123456789abcdef.part", "step_00000003.safetensors"
    others = ("movie.part", "0123456789abcdef.part", "exformer-00123456789abcdef.part")  # of other programs
    for folder in (place.path, place.checkpoints, place.model):
        for name in (ours, kept, *others):
            (folder / name).touch()
    with place.lock():
        for folder in (place.checkpoints, place.model):
            assert sorted(path.name for path in folder.iterdir()) == sorted((kept, *others))
        assert not (place.path / ours).exists()
        assert all((place.path / name).exists() for name in others)


def test_a_run_goes_on_with_what_it_began_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = CORPORA[TINY.corpus]()
    train(tmp_path, steps=2)
    (tmp_path / "model" / "model.json").unlink()
    words = (tmp_path / "tokenizer.json").read_text()
    (tmp_path / "tokenizer.json").write_text(words.replace("gatt", "gutt"))
    with pytest.raises(ValueError, match="the tokenizer changed since the run began: bring back what was"):
        train(tmp_path, steps=2)
    (tmp_path / "tokenizer.json").write_text(words)
    with monkeypatch.context() as changes:
        changes.setitem(CORPORA, TINY.corpus, lambda: replace(data, hashes=data.hashes | {"more": "0" * 64}))
        with pytest.raises(ValueError, match="the data changed since the run began: bring back what was"):
            train(tmp_path, steps=2)
    train(tmp_path, steps=2)
    before = (tmp_path / "inputs.json").read_bytes()
    (tmp_path / "inputs.json").unlink()  # a run that is older than this file
    train(tmp_path, steps=2)
    assert (tmp_path / "inputs.json").read_bytes() == before


def test_a_run_that_is_older_than_a_setting_goes_on(tmp_path: Path) -> None:
    train(tmp_path, steps=2)
    path = tmp_path / "recipe.json"
    settings = json.loads(path.read_text())
    del settings["training"]["accumulate"]
    path.write_text(json.dumps(settings | {"both_ways": False}))  # it was a setting once
    train(tmp_path, steps=2)
    path.write_text(json.dumps(settings | {"learns_by_heart": True}))
    with pytest.raises(ValueError, match="which differs in learns_by_heart"):
        train(tmp_path, steps=2)
    del settings["training"]["lr"]
    path.write_text(json.dumps(settings))
    with pytest.raises(ValueError, match="which differs in lr"):
        train(tmp_path, steps=2)


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    monkeypatch.setitem(RECIPES, "tiny", changed(TINY, name="tiny", steps=3))
    words = ["train", "tiny", "--out", str(tmp_path / "run"), "--seed", "7"]
    assert main(words) == 0
    assert capsys.readouterr() == ("", "")
    card = load_model(tmp_path / "run" / "model").card
    assert (card["steps"], card["recipe"]["training"]["seed"], card["seed"]) == (3, 7, 7)
    assert main(words) == 2
    assert main([*words, "--resume"]) == 0
    assert main([*words, "--resume", "--steps", "4"]) == 0  # its warm-up, of 3 steps, stays


def test_translations_are_judged_as_the_recipe_says(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def note(model: torch.nn.Module, tokenizer: tuple, sources: list[str], **options: object) -> list[str]:
        asked.append((options["num_beams"], options["length_penalty"]))
        return list(sources)

    monkeypatch.setattr("exformer.recipes.evaluate.translate", note)
    card = json.loads((whole / "model" / "model.json").read_text())
    recipe = Recipe.from_settings(card["recipe"] | {"num_beams": 3, "length_penalty": 0.5})
    data, tokenizer = CORPORA[TINY.corpus](), load_tokenizer(whole / "tokenizer.json")
    task = make_task(recipe, data, tokenizer)
    score(task.model, task.tokenizer, data, recipe, parts=("val", "test"))
    assert asked == [(3, 0.5)] * 2


_MEMORY = """
import ctypes, resource, sys
from exformer.recipes.malloc import disable_malloc_trim
if sys.argv[1] == "keep":
    disable_malloc_trim()
libc = ctypes.CDLL(None)
libc.malloc.restype = libc.sbrk.restype = ctypes.c_void_p
before = libc.sbrk(0)
libc.free(ctypes.c_void_p(libc.malloc(2**27)))
print(libc.sbrk(0) - before)  # by how much the process has grown
import torch
torch.set_num_threads(1)
faults = []
for _ in range(8):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.zeros(2**24) + 1
    faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
print(min(faults[-5:]))  # the first times the kept piece may be too small by an alignment
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc alone has these settings")
def test_freed_memory_is_kept() -> None:
    (grown, faults), (grown_as_usual, faults_as_usual) = (
        map(int, run_code(_MEMORY, how).split()) for how in ("keep", "leave")
    )
    assert faults_as_usual > 1000  # 128 MiB, in pages of 4 KiB or larger ones
    assert faults < 100
    assert grown_as_usual < 2**20  # the end of the memory, too
    assert grown > 2**26


def test_words_are_cut_as_in_papers() -> None:
    lines = ["Two dogs' toys.", "A man says: “No-one”, isn't it?", "Ein Mann spielt Gitarre (draußen)."]
    assert tokenize_for_papers(lines[:2], language="en") == [
        "two dogs &apos; toys .",
        "a man says : &quot; no-one , &quot; isn &apos;t it ?",
    ]
    assert tokenize_for_papers(lines[2:], language="de") == ["ein mann spielt gitarre ( draußen ) ."]


@needs_multi30k
def test_words_of_the_test_set_are_the_papers() -> None:
    for name in ("multi30k en-de", "multi30k de-en"):
        data = CORPORA[name]()
        ours = tokenize_for_papers([pair.target for pair in data.test], language=data.language)
        assert ours == data.references
