"""Recipes: Shakespeare's next character, or next byte pair, in nanoGPT's sizes for a CPU."""

from dataclasses import replace

from exformer.recipes.recipe import Recipe

#: Karpathy 2022, nanoGPT, "I only have a macbook": 12 windows of 64 characters a step, 2,000 steps.
CHARACTERS_CLASSIC = Recipe(
    name="shakespeare-char-classic",
    corpus="tiny shakespeare",
    model={"d_model": 128, "n_heads": 4, "d_ff": 512, "n_layers": 4, "max_len": 64, "dropout": 0.0},
    tokenizer="character",
    tokens=12 * 64,
    steps=2000,
    lr=1e-3,
    schedule="cosine",
    warmup=100,
    betas=(0.9, 0.99),
    weight_decay=0.1,
    clip_norm=1.0,
    every=250,
)

#: The same sizes and batches, with what was found out since; each change is a switch of its own.
CHARACTERS = replace(
    CHARACTERS_CLASSIC,
    name="shakespeare-char",
    model={
        **CHARACTERS_CLASSIC.model,
        "positions": "rotary",
        "qk_norm": True,
        "zero_init": True,
        "activation": "squared_relu",
        "tie_output": False,
    },
    optimizer="muon",
    muon_lr=0.03,
    momentum=0.9,
    lr=0.01,
    warmup=30,
    betas=(0.8, 0.95),
    weight_decay=0.0,
    schedule="linear",
)

#: Writes whole words; larger batches, for more text is read in the same time.
BYTE_PAIRS = replace(
    CHARACTERS,
    name="shakespeare-bpe",
    model={**CHARACTERS.model, "dropout": 0.1},
    tokenizer="byte-pair",
    n_merges=1000,
    tokens=32 * 64,
    steps=1500,
    muon_lr=0.04,
    momentum=0.95,
    lr=0.015,
    rates={"output": 0.02},
)
