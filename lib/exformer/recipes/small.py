"""A recipe that needs no download and takes seconds: to try a run, to cut it and to go on."""

from exformer.recipes.recipe import Recipe

ENGLISH_ITALIAN = Recipe(
    name="english-italian-small",
    corpus="english-italian",
    model={
        "d_model": 32,
        "n_heads": 2,
        "d_ff": 64,
        "n_layers": 1,
        "max_len": 32,
        "dropout": 0.1,
        "pre_norm": True,
        "share_embeddings": True,
    },
    tokenizer="word",
    tokens=512,
    steps=60,
    lr=1e-2,
    warmup=10,
    label_smoothing=0.1,
    every=5,
    average=3,
    beam=2,
)
