"""Recipes: what they refuse, their learning rates, and how large the models are that they make."""

import hashlib
import json
import math
from dataclasses import asdict, replace

import numpy as np
import pytest
from recipe_run import changed, run_code

from exformer.corpora.real.manifest import FILES
from exformer.models.decoder_lm import DecoderLM, DecoderLMConfig
from exformer.models.encoder_decoder import EncoderDecoder, EncoderDecoderConfig
from exformer.recipes import RECIPES, find_recipe
from exformer.recipes.datasets import CORPORA, hash_texts, licenses
from exformer.recipes.recipe import Recipe
from exformer.storage.upgrade import TRAINING_SETTINGS
from exformer.training.config import TrainingConfig
from exformer.training.optimizers import make_optimizers
from exformer.training.schedules import cosine_schedule, inverse_sqrt_schedule, linear_schedule

PLAIN = Recipe("plain", "english-italian")
SIZES = {"d_model": 6, "n_heads": 2, "d_ff": 10, "n_layers": 1, "max_len": 7}


def test_inverse_sqrt_schedule_by_hand() -> None:
    got = [inverse_sqrt_schedule(step, peak=6.0, warmup=4) for step in (1, 2, 4, 9, 16)]
    assert got == pytest.approx([1.5, 3, 6, 4, 3], rel=1e-12)


def test_cosine_schedule_by_hand() -> None:
    # From 2 to 6 the wave is at 1, (1 + √½)/2, 1/2, (1 - √½)/2, 0; a quarter of the peak is left.
    got = [cosine_schedule(step, peak=4.0, warmup=2, total=6, floor=0.25) for step in range(1, 7)]
    assert got == pytest.approx(
        [2, 4, 1 + 3 * 0.8535533905932737, 2.5, 1 + 3 * 0.1464466094067262, 1], rel=1e-12
    )


def test_linear_schedule_by_hand() -> None:
    # Up by thirds to 6, then down by quarters: step 7 would be 0.
    got = [linear_schedule(step, peak=6.0, warmup=3, total=6) for step in range(1, 7)]
    assert got == pytest.approx([2, 4, 6, 4.5, 3, 1.5], rel=1e-12)


@pytest.mark.parametrize(("step", "warmup", "total"), [(0, 2, 5), (6, 2, 5), (1, 0, 5), (1, 5, 5)])
def test_schedules_refuse_steps_out_of_order(step: int, warmup: int, total: int) -> None:
    for schedule in (cosine_schedule, linear_schedule):
        with pytest.raises(ValueError, match=f"got warmup {warmup}, step {step}, total {total}"):
            schedule(step, peak=1.0, warmup=warmup, total=total)
    if step < 1 or warmup < 1:
        with pytest.raises(
            ValueError, match=f"counted from 1 and warmup is at least 1, got {step} and {warmup}"
        ):
            inverse_sqrt_schedule(step, peak=1.0, warmup=warmup)


def test_the_rates_of_a_recipe() -> None:
    config = TrainingConfig(warmup=2, steps=5)
    for schedule, wanted in (
        ("inverse_sqrt", [0.5, 1, 0.4**0.5]),
        ("linear", [0.5, 1, 0.25]),
        ("cosine", [0.5, 1, 0.1]),
    ):
        rate = replace(config, schedule=schedule).make_schedule(1.0)
        assert [rate(step) for step in (1, 2, 5)] == pytest.approx(wanted)


@pytest.mark.usefixtures("unchecked_shapes")
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"optimizer": "sgd"}, "optimizer must be one of adamw, muon, got 'sgd'"),
        ({"schedule": "flat"}, "schedule must be one of .*, got 'flat'"),
        ({"tokenizer": "bytes"}, "tokenizer must be one of byte-pair, character, word"),
        ({"precision": "fp16"}, "precision must be one of no, bf16"),
        ({"steps": 0}, "steps must be at least 1, got 0"),
        ({"average_last": 0}, "average_last must be at least 1, got 0"),
        ({"n_merges": -5}, "n_merges must be at least 0, got -5"),
        ({"lr": -1.0}, r"lr must be a number of at least 0, got -1\.0"),
        ({"lr": math.nan}, "lr must be a number of at least 0, got nan"),
        ({"muon_lr": math.inf}, "muon_lr must be a number of at least 0, got inf"),
        ({"lr_by_module": {"output": -1.0}}, r"lr_by_module\['output'\] must be a number of at least 0"),
        ({"weight_decay": -1.0}, "weight_decay must be a number of at least 0"),
        ({"label_smoothing": 2.0}, r"label_smoothing must lie in \[0, 1\), got 2\.0"),
        ({"momentum": 5.0}, r"momentum must lie in \[0, 1\), got 5\.0"),
        ({"momentum": math.nan}, "momentum must lie in .*, got nan"),
        ({"betas": (2.0, 0.9)}, r"betas must be two numbers in \[0, 1\), got \(2\.0, 0\.9\)"),
        ({"betas": (0.9, math.nan)}, "betas must be two numbers"),
        ({"clip_norm": -1.0}, r"clip_norm must be above 0, got -1\.0: None sets no limit"),
        ({"betas": (0.9, 1.0)}, "betas must be two numbers"),
        ({"betas": (0.9, 0.9, 0.9)}, "betas must be two numbers"),
        ({"label_smoothing": 1.0}, "label_smoothing must lie in"),
        ({"momentum": 1.0}, "momentum must lie in"),
        ({"lr": math.inf}, "lr must be a number of at least 0, got inf"),
        ({"lr_by_module": [1.0]}, r"must be learning rates by names of modules, got \[1\.0\]"),
        ({"steps": 10**20}, "steps must lie from 1 to 1,000,000,000, got 1000"),
        ({"accumulate": 0}, "accumulate must be at least 1, got 0"),
        ({"warmup": 0}, "warmup must be at least 1, got 0"),
        ({"eval_interval": 0}, "eval_interval must be at least 1, got 0"),
        ({"tokens": 0}, "tokens must be at least 1, got 0"),
        ({"length_penalty": 10.01}, "length_penalty lie from 0 to 10"),
        ({"clip_norm": 0.0}, "clip_norm must be above 0, got 0"),
        ({"clip_norm": math.inf}, "clip_norm must be above 0, got inf"),
        ({"clip_norm": math.nan}, "clip_norm must be above 0, got nan"),
        ({"warmup": 50, "steps": 10, "schedule": "linear"}, r"warmup \(50\) must be below steps \(10\)"),
        ({"warmup": 10, "steps": 10, "schedule": "cosine"}, "must be below steps .* for a cosine schedule"),
        ({"warmup": 11, "steps": 10}, r"warmup \(11\) must be at most steps \(10\), or the learning rate"),
        ({"seed": -1}, "seed must lie from 0 to 4,294,967,295, got -1"),
        ({"seed": 2**32}, "seed must lie from 0 to 4,294,967,295, got 4294967296"),
        ({"teachers_seed": -1}, "teachers_seed must lie from 0 to 4,294,967,295, got -1"),
        ({"teachers_seed": 0}, "teachers_seed is for recipes with teachers, .* learns alone"),
        ({"patience": -1}, "patience must be at least 0, got -1"),
        ({"num_beams": 0}, "num_beams must be at least 1, got 0"),
        (
            {"num_beams": 10_001},
            "num_beams must be at most 10,000 and length_penalty lie from 0 to 10, got 10001 and 1",
        ),
        ({"length_penalty": math.nan}, "length_penalty lie from 0 to 10, got 5 and nan"),
    ],
)
def test_recipes_that_no_run_can_follow(changes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        changed(PLAIN, **changes)


_OTHER_KINDS = """
from exformer.recipes import Recipe
settings = Recipe("x", "y").settings()
for name, value in (("corpus", ["z"]), ("model", [1]), ("steps", 1.5), ("seed", 0.5), ("lr", "fast")):
    training = settings["training"]
    other = {"training": training | {name: value}} if name in training else {name: value}
    try:
        Recipe.from_settings(settings | other)
    except ValueError as error:
        print(error)
"""


@pytest.mark.usefixtures("unchecked_shapes")
def test_whole_numbers_that_numpy_made_are_whole_numbers() -> None:
    own = Recipe("x", "y", TrainingConfig(steps=700, seed=3), num_beams=2)
    numpys = Recipe("x", "y", TrainingConfig(steps=np.int64(700), seed=np.uint32(3)), num_beams=np.int8(2))
    assert json.dumps(numpys.settings()) == json.dumps(own.settings())


def test_defaults_of_a_recipe() -> None:
    own = {"name": "x", "corpus": "y", "model": {}, "tokenizer": "byte-pair", "n_merges": 0, "tokens": 4096}
    texts = {"teachers": [], "teachers_seed": None, "num_beams": 5, "length_penalty": 1.0}
    training = {"training": asdict(TrainingConfig()) | {"betas": [0.9, 0.98]}}
    assert Recipe("x", "y").settings() == training | own | texts


def test_the_classic_recipe_is_nanogpts_for_a_macbook() -> None:
    # --block_size=64 --batch_size=12 --n_layer=4 --n_head=4 --n_embd=128 --max_iters=2000 --dropout=0.0; the
    # rest as in its config/train_shakespeare_char.py
    sizes = {"d_model": 128, "n_heads": 4, "d_ff": 4 * 128, "n_layers": 4, "max_len": 64, "dropout": 0.0}
    assert find_recipe("shakespeare-char-classic") == Recipe(
        "shakespeare-char-classic",
        "tiny shakespeare",
        model=sizes,
        tokenizer="character",
        tokens=12 * 64,
        training=TrainingConfig(
            steps=2000,
            lr=1e-3,
            schedule="cosine",
            warmup=100,
            betas=(0.9, 0.99),
            weight_decay=0.1,
            clip_norm=1.0,
            eval_interval=250,
        ),
    )


def test_teachers_train_on_the_students_data() -> None:
    student = find_recipe("multi30k-en-de")
    for name in student.teachers:
        teacher = find_recipe(name)
        own = {"name": name, "corpus": teacher.corpus, "model": student.model | {"dropout": 0.3}}
        assert teacher == changed(student, teachers=(), steps=6000, length_penalty=1.0, **own)


def test_settings_of_earlier_versions() -> None:
    """Until 0.1 the settings of the training were among the others, and some had other names."""
    today = find_recipe("shakespeare-bpe").with_training(schedule="inverse_sqrt")
    settings = today.settings()
    training = settings.pop("training")
    old = settings | {name: training[name] for name in TRAINING_SETTINGS.values()}
    for name, before in (("lr_by_module", "rates"), ("eval_interval", "every"), ("average_last", "average")):
        old[before] = old.pop(name)
    old |= {"schedule": "root", "beam": old.pop("num_beams"), "alpha": old.pop("length_penalty")}
    old["both_ways"] = False
    del old["accumulate"]
    assert Recipe.from_settings(old) == today
    with pytest.raises(ValueError, match="both_ways"):
        Recipe.from_settings(old | {"both_ways": True})


def test_settings_of_other_kinds() -> None:
    said = run_code(_OTHER_KINDS).splitlines()  # in a process of its own: nothing else looks at the types
    assert said[:-1] == [
        "corpus must be a text, got ['z']",
        "model must be settings by their names, got [1]",
        "steps must be an integer, got 1.5",
        "seed must be an integer, got 0.5",
    ]
    assert said[-1].startswith("expected the settings of a recipe: ")


def test_settings_at_their_bounds() -> None:
    changed(PLAIN, lr=0.0, clip_norm=None, warmup=10, steps=10, schedule="inverse_sqrt")
    changed(PLAIN, warmup=9, steps=10, schedule="cosine")
    changed(PLAIN, muon_lr=0.0, weight_decay=0.0, momentum=0.0, label_smoothing=0.0, betas=(0.0, 0.0))
    changed(PLAIN, seed=2**32 - 1, patience=0, n_merges=0, tokens=1, num_beams=10_000, length_penalty=10.0)
    changed(
        PLAIN,
        num_beams=1,
        length_penalty=0.0,
        lr_by_module={"output": 0.0},
        average_last=1,
        eval_interval=1,
        accumulate=1,
    )


@pytest.mark.parametrize(
    ("interval", "steps", "wanted"),
    [(3, 7, [3, 6, 7]), (3, 6, [3, 6]), (9, 6, [6]), (1, 2, [1, 2]), (6, 6, [6])],
)
def test_measured_steps(interval: int, steps: int, wanted: list[int]) -> None:
    config = TrainingConfig(eval_interval=interval, steps=steps, warmup=1)
    assert list(filter(config.is_measured, range(1, steps + 1))) == wanted


@pytest.mark.parametrize("name", RECIPES)
def test_each_recipe_makes_a_small_model(name: str) -> None:
    recipe = find_recipe(name)
    assert recipe.name == name
    assert recipe.corpus in CORPORA
    assert recipe.training.eval_interval <= recipe.training.steps
    size = 259 + recipe.n_merges if recipe.tokenizer == "byte-pair" else 100
    if recipe.model.get("share_embeddings"):
        model = EncoderDecoder(EncoderDecoderConfig(size, size, **recipe.model))
    else:
        model = DecoderLM(DecoderLMConfig(size, **recipe.model))
    assert sum(p.numel() for p in model.parameters()) <= 3_000_000


def test_a_name_that_is_none() -> None:
    with pytest.raises(
        ValueError, match="there is no recipe 'x'; there are multi30k-en-de, multi30k-de-en, "
    ):
        find_recipe("x")
    with pytest.raises(ValueError, match=r"no recipe 'shakespeare-chars' \(close: shakespeare-char\); there"):
        find_recipe("shakespeare-chars")


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_parts_of_a_model_have_their_own_rates(optimizer: str) -> None:
    model = DecoderLM(DecoderLMConfig(11, tie_output=False, **SIZES))
    rates = {"embedding": 3.0, "output": 5.0}
    config = TrainingConfig(optimizer=optimizer, lr=2.0, muon_lr=7.0, lr_by_module=rates, warmup=4)
    moved = [
        (id(parameter), schedule(4))
        for each, schedule in make_optimizers(model, config)
        for group in each.param_groups
        for parameter in group["params"]
    ]
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    assert sorted(key for key, _ in moved) == sorted(names)  # each once
    found = {names[key]: rate for key, rate in moved}
    matrix, vector = "layers.0.feed_forward.w_1.weight", "layers.0.feed_forward.w_1.bias"
    chosen = ("embedding.weight", "output.weight", "positions.weight", vector)
    assert [found[name] for name in chosen] == [3, 5, 2, 2]
    assert found[matrix] == (7 if optimizer == "muon" else 2)


def test_a_rate_for_a_part_that_is_not_there() -> None:
    config = TrainingConfig(lr_by_module={"output": 1.0})
    with pytest.raises(ValueError, match=r"is for modules of the model \(embedding, .*\), got output"):
        make_optimizers(DecoderLM(DecoderLMConfig(11, **SIZES)), config)


def test_licenses_and_hashes() -> None:
    """Each license once, in the order of the alphabet; texts in their own order."""
    names = ["multi30k/train.en.gz", "multi30k/train.de.gz", "tinyshakespeare/input.txt", "another"]
    known = [name for name in names if name in FILES]
    wanted = {FILES[name].license for name in known}
    assert len(wanted) < len(known) == 3
    assert licenses(names) == licenses(names[::-1]) == sorted(wanted)
    assert licenses([]) == []
    assert hash_texts(["è", "b"]) == hashlib.sha256('["è", "b"]'.encode()).hexdigest()
    assert hash_texts([("a", "b")]) == hashlib.sha256(b'[["a", "b"]]').hexdigest()
