"""Recall of n pairs by one layer of attention, whose memory grows with the text or has a fixed size."""

from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from exformer.nn.normalization import LayerNorm
from exformer.training.loop import train
from exformer.training.schedules import linear_schedule

N_KEYS, N_VALUES, MOST_PAIRS = 256, 64, 32  # pairs of a training text: 1 to 32
LENGTHS = (2, 4, 8, 16, 32, 64, 128)  # pairs of a text in the test


def softmax_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attend to all positions before, with softmax weights; all (batch, position, width)."""
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def linear_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attend with weights φ(q)·φ(k), all positions at once; a test holds it equal to a state of fixed size.

    Source:
        Katharopoulos et al. 2020, equation 7, with φ(x) = elu(x) + 1.
    """
    weights = ((F.elu(q) + 1) @ (F.elu(k) + 1).transpose(-1, -2)).tril()
    return weights @ v / weights.sum(dim=-1, keepdim=True)


class Recall(nn.Module):
    """One layer, one head: reads pairs of a key and a value, then keys alone, and names their values."""

    def __init__(self, d_model: int, *, linear: bool) -> None:
        super().__init__()
        self.keys, self.values = nn.Embedding(N_KEYS, d_model), nn.Embedding(N_VALUES + 1, d_model)
        self.w_qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.w_o = nn.Linear(d_model, d_model, bias=False)
        self.norms = nn.ModuleList(LayerNorm(d_model) for _ in range(3))
        self.feed_forward = nn.Sequential(
            nn.Linear(d_model, 4 * d_model), nn.ReLU(), nn.Linear(4 * d_model, d_model)
        )
        self.output = nn.Linear(d_model, N_VALUES)
        self.attend = linear_attention if linear else softmax_attention

    def forward(self, keys: Tensor, values: Tensor) -> Tensor:
        """Score the value of each position: (batch, position, value)."""
        x = self.keys(keys) + self.values(values)
        x = x + self.w_o(self.attend(*self.w_qkv(self.norms[0](x)).chunk(3, dim=-1)))
        x = x + self.feed_forward(self.norms[1](x))
        return self.output(self.norms[2](x))


def texts(n_pairs: int, *, batch: int, rng: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Make texts of n pairs and n questions: keys, values (N_VALUES where one is asked for), answers."""
    keys = torch.rand(batch, N_KEYS, generator=rng).argsort(dim=1)[:, :n_pairs]
    values = torch.randint(N_VALUES, (batch, n_pairs), generator=rng)
    order = torch.rand(batch, n_pairs, generator=rng).argsort(dim=1)
    asked = torch.full_like(values, N_VALUES)
    return (
        torch.cat((keys, keys.gather(1, order)), dim=1),
        torch.cat((values, asked), dim=1),
        values.gather(1, order),
    )


def train_recall(
    *, linear: bool, d_model: int, lr: float, seed: int, steps: int = 600, batch: int = 16
) -> dict[str, Any]:
    """Train on texts of 1 to 32 pairs; return the accuracy by the number of pairs, on new texts."""
    torch.manual_seed(seed)
    rng = torch.Generator().manual_seed(seed)
    model = Recall(d_model, linear=linear)
    n_pairs = (int(torch.randint(1, MOST_PAIRS + 1, (1,), generator=rng)) for _ in range(steps))
    losses = train(
        model,
        (texts(n, batch=batch, rng=rng) for n in n_pairs),
        loss_fn=_loss,
        optimizer=torch.optim.AdamW(model.parameters(), lr=lr),
        schedule=partial(linear_schedule, peak=lr, warmup=40, total=steps + 1),
    )
    return {"accuracy": {n: accuracy(model, n) for n in LENGTHS}, "loss": losses[-1]}


def _loss(model: nn.Module, text: tuple[Tensor, Tensor, Tensor]) -> Tensor:
    keys, values, answers = text
    return F.cross_entropy(model(keys, values)[:, -answers.size(1) :].flatten(0, 1), answers.flatten())


@torch.no_grad()
def accuracy(model: Recall, n_pairs: int, *, batch: int = 64) -> float:
    """Return the fraction of values that a model recalls, on texts of n pairs."""
    keys, values, answers = texts(n_pairs, batch=batch, rng=torch.Generator().manual_seed(10_000 + n_pairs))
    return (model(keys, values)[:, n_pairs:].argmax(dim=-1) == answers).float().mean().item()
