"""The options of `exformer train`: recipes with other settings."""

from dataclasses import replace

import pytest

from exformer.recipes.options import OPTIONS, change_recipe
from exformer.recipes.zoo import BYTE_PAIRS, EN_DE, EN_DE_ALONE


def test_options_by_hand() -> None:
    options = {"steps": 200, "seed": 3, "lr": 0.03, "batch": 99, "d_model": 64, "n_heads": 2, "dropout": 0.5}
    changed = change_recipe(BYTE_PAIRS, options)
    training = replace(
        BYTE_PAIRS.training,
        steps=200,
        warmup=20,
        seed=3,
        lr=0.03,
        muon_lr=0.08,
        lr_by_module={"output": 0.04},
    )
    model = BYTE_PAIRS.model | {"d_model": 64, "d_ff": 256, "n_heads": 2, "dropout": 0.5}
    assert changed == replace(BYTE_PAIRS, training=training, tokens=99, model=model)
    assert change_recipe(EN_DE, {"teachers_seed": 5}).teachers_seed == 5
    assert change_recipe(EN_DE_ALONE, {}) == EN_DE_ALONE


def test_a_warm_up_fits_into_few_steps() -> None:
    assert [change_recipe(BYTE_PAIRS, {"steps": n}).training.warmup for n in (2, 6, 299, 9000)] == [
        1,
        1,
        29,
        30,
    ]
    assert change_recipe(BYTE_PAIRS, {"steps": 200}, resumed=True).training.warmup == 30


def test_options_that_change_nothing() -> None:
    training, model = BYTE_PAIRS.training, BYTE_PAIRS.model
    same = {"lr": training.lr, "d_model": model["d_model"], "steps": training.steps}
    assert change_recipe(BYTE_PAIRS, same) == BYTE_PAIRS


def test_unknown_options_are_named() -> None:
    with pytest.raises(ValueError, match=f"unknown settings: wings; expected some of {', '.join(OPTIONS)}"):
        change_recipe(BYTE_PAIRS, {"wings": 2})
    with pytest.raises(ValueError, match="steps must be at least 1, got 0"):
        change_recipe(BYTE_PAIRS, {"steps": 0})
