"""nanoGPT, reimplemented: its model of Shakespeare's characters and how its training script moves it."""

import math
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from exformer.training.schedules import cosine_schedule

STEPS, LR, WARMUP = 2000, 1e-3, 100


class Block(nn.Module):
    """Attention with one matrix for queries, keys and values, then a feed-forward network; no biases."""

    def __init__(self, d_model: int, *, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.norm_1 = nn.LayerNorm(d_model, bias=False)
        self.norm_2 = nn.LayerNorm(d_model, bias=False)
        self.qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.attention_out = nn.Linear(d_model, d_model, bias=False)
        self.up = nn.Linear(d_model, 4 * d_model, bias=False)
        self.out = nn.Linear(4 * d_model, d_model, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Apply attention, then the feed-forward network, each with its residual connection."""
        qkv = self.qkv(self.norm_1(x)).chunk(3, dim=-1)
        q, k, v = (part.unflatten(-1, (self.n_heads, -1)).transpose(1, 2) for part in qkv)
        heads = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.attention_out(heads.transpose(1, 2).flatten(start_dim=2))
        return x + self.out(F.gelu(self.up(self.norm_2(x))))


class NanoGPT(nn.Module):
    """Learned positions, pre-norm, tied output, matrices initialized with standard deviation 0.02."""

    def __init__(self, vocab_size: int, *, d_model: int, n_heads: int, n_layers: int, context: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.positions = nn.Embedding(context, d_model)
        self.blocks = nn.ModuleList(Block(d_model, n_heads=n_heads) for _ in range(n_layers))
        self.norm = nn.LayerNorm(d_model, bias=False)
        for name, p in self.named_parameters():
            if p.ndim == 2:
                deep = name.endswith("out.weight")
                nn.init.normal_(p, std=0.02 / math.sqrt(2 * n_layers) if deep else 0.02)

    def forward(self, ids: Tensor) -> Tensor:
        """Return the logits of the token after each position."""
        x = self.embedding(ids) + self.positions.weight[: ids.size(1)]
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.embedding.weight)


def training(
    model: nn.Module, batches: Iterator[Tensor], *, steps: int = STEPS, precision: str = "float32"
) -> Iterator[float]:
    """Train as nanoGPT's script does on a CPU, and yield the loss before each step.

    Args:
        model: New.
        batches: Windows of (batch, time + 1) tokens.
        steps: How many.
        precision: "float32", or "bfloat16" for autocast, which the script has on GPUs only.
    """
    groups = [
        {"params": [p for p in model.parameters() if p.ndim >= 2], "weight_decay": 0.1},
        {"params": [p for p in model.parameters() if p.ndim < 2], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=LR, betas=(0.9, 0.99))  # fused on GPUs only, as there
    for step in range(1, steps + 1):
        for group in optimizer.param_groups:
            group["lr"] = cosine_schedule(step, peak=LR, warmup=min(WARMUP, steps - 1), total=steps)
        batch = next(batches)
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
            logits = model(batch[:, :-1])
            loss = F.cross_entropy(logits.flatten(end_dim=1), batch[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        yield loss.item()
