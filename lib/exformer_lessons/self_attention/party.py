"""The party of lesson 03: each guest looks for a friend by name and must say what the friend drinks."""

import math
from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from exformer.training.loop import train
from exformer.training.schedules import linear_schedule

N_NAMES, N_DRINKS, WIDTH = 26, 8, 32
FEWEST, MOST = 3, 16  # guests of a party in training


def new_party(batch: int, n: int) -> tuple[Int[Tensor, "batch guest 3"], Int[Tensor, "batch guest"]]:
    """Return the badges of some parties of n guests, and the drink of each guest's friend.

    A badge has three numbers: the guest's name, the friend's name and the guest's drink. At each party, the
    guests look for each other in one ring.
    """
    name = torch.rand(batch, N_NAMES).argsort(dim=1)[:, :n]
    drink = torch.randint(N_DRINKS, (batch, n))
    ring = torch.rand(batch, n).argsort(dim=1)  # each looks for the next in the ring
    friend = torch.empty_like(ring).scatter_(1, ring, ring.roll(-1, 1))
    badges = torch.stack([name, name.gather(1, friend), drink], dim=-1)
    return badges, drink.gather(1, friend)


class Badges(nn.Module):
    """What all guests have: embeddings of the three numbers of a badge, and a layer that names a drink."""

    def __init__(self) -> None:
        super().__init__()
        self.name, self.friend = nn.Embedding(N_NAMES, WIDTH), nn.Embedding(N_NAMES, WIDTH)
        self.drink = nn.Embedding(N_DRINKS, WIDTH)
        self.answer = nn.Linear(WIDTH, N_DRINKS)

    def embed(self, badges: Int[Tensor, "batch guest 3"]) -> Float[Tensor, "batch guest 32"]:
        """Return the vector of each guest, the sum of its embeddings, with entries of variance 1."""
        name, friend, drink = badges.unbind(dim=-1)
        return (self.name(name) + self.friend(friend) + self.drink(drink)) / math.sqrt(3)


def projection(d_in: int, d_out: int) -> nn.Linear:
    """Return a matrix that keeps the variance of the entries of a vector."""
    layer = nn.Linear(d_in, d_out, bias=False)
    nn.init.normal_(layer.weight, std=1 / math.sqrt(d_in))
    return layer


def learn(make: Callable[[], nn.Module], lr: float = 0.01, steps: int = 1000, seed: int = 1) -> nn.Module:
    """Train guests at parties of 3 to 16, with Adam and a linear schedule.

    Args:
        make: Returns the guests; it is called after the seed is set.
        lr: The highest learning rate.
        steps: How many batches of 32 parties.
        seed: Of the initialization and of the parties.
    """
    torch.manual_seed(seed)
    model = make()
    batches = [new_party(32, int(torch.randint(FEWEST, MOST + 1, ()))) for _ in range(steps)]
    train(
        model,
        batches,
        loss_fn=lambda m, batch: F.cross_entropy(m(batch[0]).flatten(0, 1), batch[1].flatten()),
        optimizer=torch.optim.Adam(model.parameters(), lr=lr),
        schedule=partial(linear_schedule, peak=lr, warmup=steps // 10, total=steps),
    )
    return model.eval().requires_grad_(False)


def accuracy(model: nn.Module, n: int) -> float:
    """Return how often guests name the friend's drink, at 500 parties of n."""
    torch.manual_seed(n)
    badges, drinks = new_party(500, n)
    return (model(badges).argmax(dim=-1) == drinks).double().mean().item()
