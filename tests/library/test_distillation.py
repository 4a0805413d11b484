"""Translators that learn from others: who reads what, which answers count, and runs that were cut."""

import hashlib
import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from recipe_run import SIZES, TINY, changed, turned_round
from safetensors.torch import load_file

from exformer.cli.main import main
from exformer.corpora.examples import Pair
from exformer.generation.translate import translate
from exformer.hub.pretrained import load_model
from exformer.recipes import RECIPES, distillation
from exformer.recipes.datasets import CORPORA, Pairs, Text
from exformer.recipes.distillation import add_answers, ask_teacher, texts_for
from exformer.recipes.evaluate import judge, prepare
from exformer.recipes.recipe import Recipe
from exformer.recipes.run import run_recipe
from exformer.recipes.run_folder import RunFolder
from exformer.tokenizers.characters_and_words import CharTokenizer

LETTERS = CharTokenizer.from_texts(["abcdefghijklmnopqrstuvwxyz "])
SMALL = Pairs([Pair("ab", "xyz"), Pair("c", "z")], [Pair("a", "x")], [Pair("b", "y")], {"file": "0" * 64})
LEARNER = changed(TINY, steps=6, teachers=("there", "back"))
AT_ONCE = 30


def recipe(name: str, corpus: str) -> Recipe:
    return changed(TINY, name=name, corpus=corpus, steps=3, length_penalty=0.5)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> Pairs:
    """Make a corpus of few pairs, the same turned round, and a teacher for each."""
    data = CORPORA[TINY.corpus]()
    data = replace(data, train=data.train[:80], val=data.train[:5], test=data.train[5:9])
    monkeypatch.setitem(CORPORA, TINY.corpus, lambda: data)
    monkeypatch.setitem(CORPORA, "italian-english", lambda: turned_round(data))
    monkeypatch.setitem(RECIPES, "there", recipe("there", TINY.corpus))
    monkeypatch.setitem(RECIPES, "back", recipe("back", "italian-english"))
    monkeypatch.setattr(distillation, "_SAVE_INTERVAL", AT_ONCE)
    return data


def test_answers_stand_with_what_they_translate() -> None:
    answers = {"there": ("source", ["uvwxyz", "  "]), "back": ("target", ["abcde", "aa"])}
    data = add_answers(SMALL, answers, tokenizer=LETTERS)
    # 6 letters are twice the 3 of "xyz": they stay; 5 are more than twice the 2 of "ab": they go
    assert data.train == [*SMALL.train, Pair("ab", "uvwxyz"), Pair("aa", "z")]
    assert (data.val, data.test) == (SMALL.val, SMALL.test)
    known = hashlib.sha256(b'["abcde", "aa"]').hexdigest()
    assert list(data.hashes) == ["file", "translations by there", "translations by back"]
    assert (data.hashes["file"], data.hashes["translations by back"]) == ("0" * 64, known)


def test_answers_are_as_many_as_the_texts() -> None:
    with pytest.raises(ValueError, match="shorter"):
        add_answers(SMALL, {"there": ("source", ["u"])}, tokenizer=LETTERS)


def test_no_time_at_all_is_a_time() -> None:
    answer = {"texts": ["a", "b"], "time": {"processor_seconds": 0, "wall_seconds": 0.0}}
    assert distillation._is_answer(answer, most=2)
    assert not distillation._is_answer(answer, most=1)


def test_each_teacher_reads_its_own_language(few: Pairs) -> None:
    assert texts_for(RECIPES["there"], few) == ("source", [pair.source for pair in few.train])
    assert texts_for(RECIPES["back"], few) == ("target", [pair.target for pair in few.train])


def test_teachers_of_other_texts(few: Pairs, monkeypatch: pytest.MonkeyPatch) -> None:
    message = "the teacher there must have learned from the same pairs, in any direction"
    with pytest.raises(ValueError, match=message):
        texts_for(RECIPES["there"], replace(few, train=few.train[:-1]))
    with pytest.raises(ValueError, match=message):
        texts_for(RECIPES["there"], Text("a", "b", {}))
    monkeypatch.setitem(CORPORA, TINY.corpus, lambda: Text("a", "b", {}))
    with pytest.raises(ValueError, match=message):
        texts_for(RECIPES["there"], few)


def test_a_run_with_teachers(few: Pairs, tmp_path: Path) -> None:
    run_recipe(changed(LEARNER, seed=3), tmp_path)
    card, place = load_model(tmp_path / "model").card, RunFolder(tmp_path)
    assert card["recipe"]["teachers"] == ["there", "back"]
    assert Recipe.from_settings(card["recipe"]) == changed(LEARNER, seed=3)
    assert list(card["times"]) == [LEARNER.name, "there", "back"]
    for name, side in (("there", "source"), ("back", "target")):
        room = place.teacher(name)
        found, written = load_model(room.model), json.loads((room.path / "translations.json").read_text())
        assert (found.card["seed"], found.card["recipe"]["name"]) == (3, name)
        texts = [getattr(pair, side) for pair in few.train]
        wanted = []
        for start in range(0, 80, AT_ONCE):
            part = texts[start : start + AT_ONCE]
            wanted += translate(found.model, found.tokenizer, part, num_beams=1, length_penalty=0.5)
        assert written["texts"] == wanted
        sha = hashlib.sha256(json.dumps(wanted, ensure_ascii=False).encode()).hexdigest()
        assert card["data"][f"translations by {name}"] == sha
        for clock, seconds in card["times"][name].items():
            assert seconds == pytest.approx(found.card["training"][clock] + written["time"][clock], abs=0.002)
    for clock, seconds in card["training"].items():
        assert seconds == pytest.approx(sum(each[clock] for each in card["times"].values()), abs=0.005)
    assert card["history"][-1]["processor_seconds"] < card["training"]["processor_seconds"]


def test_a_further_seed_with_the_same_teachers(
    few: Pairs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setitem(RECIPES, "learner", changed(LEARNER, name="learner"))
    run_recipe(RECIPES["learner"], tmp_path / "first")  # seed 0 is a seed, and not the lack of one
    for seed, status, said in (
        (2, 0, ""),
        (3, 2, "there holds a run of another recipe, which differs in seed"),
    ):
        folder = tmp_path / str(seed)
        folder.mkdir()
        (folder / "teachers").symlink_to(tmp_path / "first" / "teachers")
        more = ["--teachers-seed", "0"] if seed == 2 else []
        assert main(["train", "learner", "--out", str(folder), "--seed", str(seed), *more]) == status
        assert said in capsys.readouterr().err
    first, second = (load_model(tmp_path / name / "model").card for name in ("first", "2"))
    assert (second["seed"], second["recipe"]["teachers_seed"]) == (2, 0)
    judged = [judge(prepare(tmp_path / name / "model")) for name in ("first", "2")]
    assert [(m["seed"], m["teachers_seed"]) for m in judged] == [(0, 0), (2, 0)]
    assert (first["data"], first["times"]["back"]) == (second["data"], second["times"]["back"])


def test_answers_are_learned(few: Pairs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        distillation, "translate", lambda model, tokenizer, texts, **how: ["una zebra"] * len(texts)
    )
    weights = []
    for names in (("there", "back"), ("back",), ()):
        folder = run_recipe(changed(LEARNER, teachers=names), tmp_path / str(len(names)))
        weights.append(load_file(folder / "model.safetensors"))
        assert ("times" in load_model(folder).card) == bool(names)
    for some, others in ((0, 1), (1, 2), (0, 2)):
        assert any(not torch.equal(weights[some][name], value) for name, value in weights[others].items())


def test_a_run_that_was_cut_asks_only_for_what_is_missing(
    few: Pairs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_recipe(LEARNER, tmp_path / "whole")
    left, asked = [], []

    def tired(model: torch.nn.Module, tokenizer: tuple, texts: list[str], **options: object) -> list[str]:
        if not left:
            raise KeyboardInterrupt
        left.pop()
        asked.extend(texts)
        return translate(model, tokenizer, texts, **options)

    monkeypatch.setattr(distillation, "translate", tired)
    for parts in (1, 0, 3):  # of the six that 2 times 80 texts make
        left[:] = [None] * parts
        with pytest.raises(KeyboardInterrupt):
            run_recipe(LEARNER, tmp_path / "cut", resume=True)
    left[:] = [None] * 2
    run_recipe(LEARNER, tmp_path / "cut", resume=True)
    assert asked == [pair.source for pair in few.train] + [pair.target for pair in few.train]
    for name in ("model/model.safetensors", "teachers/back/model/model.safetensors"):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_resumed_run_refuses_other_translations(few: Pairs, tmp_path: Path) -> None:
    run_recipe(LEARNER, tmp_path)
    (tmp_path / "model" / "model.json").unlink()
    path = RunFolder(tmp_path).teacher("back").translations
    found = json.loads(path.read_text())
    path.write_text(json.dumps(found | {"texts": ["una zebra", *found["texts"][1:]]}))
    with pytest.raises(ValueError, match="the teachers' translations changed since the run began"):
        run_recipe(LEARNER, tmp_path, resume=True)


def test_a_teacher_that_is_there_is_not_trained_again(few: Pairs, tmp_path: Path) -> None:
    room = RunFolder(tmp_path).teacher("there")
    run_recipe(RECIPES["there"], room.path)
    before = room.log.stat().st_mtime_ns
    run_recipe(LEARNER, tmp_path)
    assert room.log.stat().st_mtime_ns == before


def test_a_teacher_that_another_process_trains_is_waited_for(few: Pairs, tmp_path: Path) -> None:
    room = RunFolder(tmp_path).teacher("there")
    with ThreadPoolExecutor() as pool:
        with room.lock():
            run = pool.submit(run_recipe, LEARNER, tmp_path)
            while not (tmp_path / "tokenizer.json").exists() and not run.done():
                time.sleep(0.01)
            run_recipe(
                RECIPES["back"], RunFolder(tmp_path).teacher("back").path
            )  # takes longer than to be refused
            assert not run.done()
            assert not room.recipe.exists()
        assert run.result() == tmp_path / "model"
    with pytest.raises(ValueError, match="another process trains in"), room.lock(), room.lock():
        pass


def test_teachers_compute_as_the_learner_does(few: Pairs, tmp_path: Path) -> None:
    run_recipe(changed(LEARNER, steps=3, precision="bf16", teachers=("there",)), tmp_path)
    assert (
        load_model(RunFolder(tmp_path).teacher("there").model).card["recipe"]["training"]["precision"]
        == "bf16"
    )


def test_what_is_known_at_once_is_refused_before_the_teachers(
    few: Pairs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = CORPORA[TINY.corpus]()
    monkeypatch.setitem(CORPORA, "others", lambda: replace(data, train=data.train[:-1]))
    monkeypatch.setitem(RECIPES, "stranger", recipe("stranger", "others"))
    for number, (changes, message) in enumerate(
        (
            ({"teachers": ("there", "stranger")}, "the teacher stranger must have learned"),
            (
                {"model": {**SIZES, "wings": 2, "pad_id": 7}},
                "unknown model settings: pad_id, wings; expected",
            ),
            ({"lr_by_module": {"wings": 0.1}}, r"lr_by_module is for modules of the model \(.*\), got wings"),
            ({"model": {**SIZES, "max_len": 4}}, r"a sentence has \d+ tokens, the recipe's model max_len 4"),
        )
    ):
        with pytest.raises(ValueError, match=message):
            run_recipe(changed(LEARNER, **changes), tmp_path / str(number))
        assert not (tmp_path / str(number) / "teachers").exists()


def test_mistakes(
    few: Pairs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setitem(RECIPES, "learner", changed(LEARNER, name="learner", teachers=("therex",)))
    assert main(["train", "learner", "--out", str(tmp_path / "a")]) == 2
    assert "there is no recipe 'therex' (close: there)" in capsys.readouterr().err
    with pytest.raises(ValueError, match="a teacher is named twice, got there, there: name each one once"):
        run_recipe(changed(LEARNER, teachers=("there", "there")), tmp_path / "b")
    monkeypatch.setitem(RECIPES, "back", changed(LEARNER, name="back", teachers=("there",)))
    with pytest.raises(ValueError, match="the teacher back has teachers itself: choose a recipe that learns"):
        run_recipe(LEARNER, tmp_path / "b")
    assert not (tmp_path / "b").exists()  # the first teacher was not trained in vain
    room = RunFolder(tmp_path / "c")
    room.path.mkdir()
    seconds = '{"processor_seconds": 1, "wall_seconds": 2.5}'
    for damaged in (
        f'{{"texts": ["a", "b", "c"], "time": {seconds}}}',
        f'{{"texts": "a", "time": {seconds}}}',
        f'{{"texts": ["a", 1], "time": {seconds}}}',
        '{"texts": ["a", "b"], "time": {}}',
        '{"texts": ["a", "b"], "time": {"processor_seconds": 1, "wall_seconds": "long"}}',
        '{"texts": ["a", "b"], "time": {"processor_seconds": 1, "wall_seconds": NaN}}',
        '{"texts": ["a", "b"], "time": {"processor_seconds": 1, "wall_seconds": Infinity}}',
        '{"texts": ["a", "b"], "time": {"processor_seconds": -1, "wall_seconds": 2.5}}',
        '{"texts": []}',
        "[1]",
        "{",
    ):
        (room.path / "translations.json").write_text(damaged)
        with pytest.raises(ValueError, match=r"translations\.json is .*: expected"):
            ask_teacher(TINY, room, ["a", "b"])
