"""Muon: the recipe shakespeare-char, its learning rates following the clock.

A transformer with rotary positions, normalized queries and keys, and squared ReLU. Muon moves the matrices
of its layers, AdamW the rest. All rates climb for ten steps, then fall to zero with the share of the time
that is left. Half precision (bfloat16) where the processor has instructions for it.
"""

import time

START = time.monotonic()

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from exformer.data.windows import TextWindows
from exformer.hub.pretrained import save_model
from exformer.models.decoder_lm import DecoderLM, DecoderLMConfig
from exformer.recipes.malloc import disable_malloc_trim
from exformer.tokenizers.characters_and_words import CharTokenizer
from exformer.training.loop import set_seed, training_steps
from exformer.training.muon import Muon
from exformer.training.optimizers import adamw, split_parameters

CONTEXT, BATCH = 64, 12
WARMUP = 10  # steps
RESERVE = 1.5  # seconds, to save the model and to end


def has_bfloat16() -> bool:
    """Tell whether the processor multiplies numbers of half precision by itself."""
    can = torch.cpu.get_capabilities()
    return any(can.get(name, False) for name in ("avx512_bf16", "amx_bf16", "bf16"))


def loss_of(model: DecoderLM, batch: Tensor, *, half: bool) -> Tensor:
    """Compute the loss of a batch, in half precision or not."""
    with torch.autocast("cpu", torch.bfloat16, enabled=half):
        return model.loss(batch)


def main() -> None:
    """Train until the time is nearly over."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--train", type=Path)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()

    def left() -> float:
        """Return the share of the time that is left, 1 to 0."""
        return max(0.0, 1 - (time.monotonic() - START) / (args.seconds - RESERVE))

    def rate(peak: float) -> Callable[[int], float]:
        return lambda step: peak * min(step / WARMUP, left())

    disable_malloc_trim()
    set_seed(args.seed)
    text = args.train.read_text(encoding="utf-8")
    tokenizer = CharTokenizer.from_texts([text])
    windows = TextWindows(torch.tensor(tokenizer.encode(text)), CONTEXT, BATCH, args.seed)
    config = DecoderLMConfig(
        tokenizer.vocab_size,
        d_model=128,
        n_heads=4,
        d_ff=512,
        n_layers=4,
        max_len=CONTEXT,
        dropout=0.0,
        positions="rotary",
        qk_norm=True,
        zero_init=True,
        activation="squared_relu",
        tie_output=False,
    )
    model = DecoderLM(config)
    matrices, rest = split_parameters(model)
    half, steps = has_bfloat16(), 0
    for _ in training_steps(
        model,
        map(windows.batch, windows.steps()),
        loss_fn=partial(loss_of, half=half),
        optimizers=[(Muon(matrices, momentum=0.9), rate(0.03)), (adamw(rest, betas=(0.8, 0.95)), rate(0.01))],
    ):
        steps += 1
        if not left():
            break
    card = {"seed": args.seed, "steps": steps, "precision": "bfloat16" if half else "float32"}
    save_model(args.out, model, tokenizer, card=card)


if __name__ == "__main__":
    main()
