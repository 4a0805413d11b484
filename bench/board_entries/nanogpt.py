"""nanoGPT: its recipe for a laptop's processor, its learning rate following the clock.

nanoGPT's model (Karpathy 2022) with the sizes, first weights, AdamW, clipping and float32 of its training
script on a CPU. The script takes 2,000 steps with a cosine; here the cosine goes with the share of the time
that has passed.

The model is this library's DecoderLM without biases; a test holds its logits and its training steps to those
of bench/nano_gpt.py. DecoderLM scales its table of embeddings by the root of d_model, nanoGPT does not. So
the factor is 1 in the training, which would go another way otherwise, and `fold` has the saved weights make
up for it.
"""

import time

START = time.monotonic()

import argparse
import math
from pathlib import Path

import torch
from torch import nn

from exformer.data.windows import TextWindows
from exformer.hub.pretrained import save_model
from exformer.models.decoder_lm import DecoderLM, DecoderLMConfig
from exformer.recipes.malloc import disable_malloc_trim
from exformer.tokenizers.characters_and_words import CharTokenizer
from exformer.training.loop import set_seed, training_steps

CONTEXT, BATCH = 64, 12
LR, WARMUP = 1e-3, 100  # steps
RESERVE = 1.5  # seconds, to save the model and to end


def build(vocab_size: int, *, d_model: int, n_heads: int, n_layers: int, context: int) -> DecoderLM:
    """Make nanoGPT's model: matrices begin at 0.02, those before a sum smaller by the root of their count."""
    sizes = {"d_model": d_model, "n_heads": n_heads, "n_layers": n_layers, "d_ff": 4 * d_model}
    model = DecoderLM(DecoderLMConfig(vocab_size, max_len=context, dropout=0.0, bias=False, **sizes))
    model.embedding.factor = 1.0
    for name, p in model.named_parameters():
        if p.ndim == 2:
            before_sum = name.endswith(("w_o.weight", "w_2.weight"))
            nn.init.normal_(p, std=0.02 / math.sqrt(2 * n_layers) if before_sum else 0.02)
    return model


def make_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    """Make AdamW, under which matrices decay and gains do not."""
    groups = [
        {"params": [p for p in model.parameters() if p.ndim >= 2], "weight_decay": 0.1},
        {"params": [p for p in model.parameters() if p.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=LR, betas=(0.9, 0.99))


@torch.no_grad()
def fold(model: DecoderLM) -> None:
    """Let the weights make up for the factor of the embeddings, which a loaded model has: same logits."""
    root = math.sqrt(model.config.d_model)
    model.embedding.factor = root
    model.embedding.weight /= root  # times the factor, the same vectors go in;
    model.norm.weight *= root  # the tied output has the smaller table, too


def main() -> None:
    """Train until the time is nearly over."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--train", type=Path)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()

    def passed() -> float:
        """Return the share of the time that has passed, 0 to 1."""
        return min(1.0, (time.monotonic() - START) / (args.seconds - RESERVE))

    def rate(step: int) -> float:
        cosine = 0.1 + 0.9 * (1 + math.cos(math.pi * passed())) / 2
        return LR * min(step / WARMUP, cosine)

    disable_malloc_trim()
    set_seed(args.seed)
    text = args.train.read_text(encoding="utf-8")
    tokenizer = CharTokenizer.from_texts([text])
    windows = TextWindows(torch.tensor(tokenizer.encode(text)), CONTEXT, BATCH, args.seed)
    model = build(tokenizer.vocab_size, d_model=128, n_heads=4, n_layers=4, context=CONTEXT)
    steps = 0
    for _ in training_steps(
        model,
        map(windows.batch, windows.steps()),
        loss_fn=DecoderLM.loss,
        optimizers=[(make_optimizer(model), rate)],
        clip_norm=1.0,
    ):
        steps += 1
        if passed() == 1.0:
            break
    fold(model)
    card = {"seed": args.seed, "steps": steps, "precision": "float32"}
    save_model(args.out, model, tokenizer, card=card)


if __name__ == "__main__":
    main()
