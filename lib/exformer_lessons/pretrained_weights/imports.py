"""Wrong imports of a model, which all load, and the repairs of those that one token cannot show."""

import re
from collections.abc import Callable
from dataclasses import replace
from random import Random
from string import ascii_uppercase
from typing import Any

import torch
from torch import Tensor, nn

from exformer.hub.hugging_face.tensors import halves, neighbors

State = dict[str, Tensor]
#: Names of the tensors whose rows a rotation pairs.
_ROTATED = r"w_[qk]\.|norm_[qk]\."


def _changed(state: State, pattern: str, change: Callable[[Tensor], Tensor]) -> State:
    """Change the tensors whose names match."""
    return {name: change(tensor) if re.search(pattern, name) else tensor for name, tensor in state.items()}


def _exchanged(state: State, *pairs: tuple[str, str]) -> State:
    """Exchange tensors, by what their names contain; one without a partner stays."""
    other = {a: b for pair in pairs for a, b in (pair, pair[::-1])}
    pattern = "|".join(other)
    partner = {name: re.sub(pattern, lambda found: other[found[0]], name) for name in state}
    return {name: state.get(partner[name], tensor) for name, tensor in state.items()}


def last_layer(state: State, how: str, *, seed: int = 0) -> State:
    """Leave the last layer out, or draw it anew as a program does that finds it missing in the file.

    Args:
        state: Of a ``DecoderLM`` or an ``EncoderDecoder``; its decoder loses the layer.
        how: "left out": it adds nothing; "0.02": normal matrices of this standard deviation, as
            in transformers; "default": as PyTorch draws a new ``nn.Linear``. Gains are 1, biases 0.
        seed: Of the new matrices.
    """
    rng = torch.Generator().manual_seed(seed)
    last = max(int(found[1]) for name in state if (found := re.match(r"(?:layers|decoder)\.(\d+)\.", name)))
    new = {}
    for name, tensor in state.items():
        if not re.match(rf"(layers|decoder)\.{last}\.", name):
            new[name] = tensor
        elif tensor.dim() == 1:
            new[name] = torch.full_like(tensor, float("norm" in name and name.endswith("weight")))
        elif how == "left out":
            new[name] = torch.zeros_like(tensor)
        elif how == "0.02":
            new[name] = 0.02 * torch.randn(tensor.shape, generator=rng)
        else:
            limit = tensor.size(1) ** -0.5
            new[name] = (2 * torch.rand(tensor.shape, generator=rng) - 1) * limit
    return new


def _halves(state: State, d_head: int) -> State:
    """Take rows that lie side by side for rows of two halves, in all that a rotation touches."""
    return _changed(state, _ROTATED, lambda tensor: neighbors(tensor, d_head=d_head))


def _neighbors(state: State, d_head: int) -> State:
    """Put the rows back that :func:`_halves` reordered."""
    return _changed(state, _ROTATED, lambda tensor: halves(tensor, d_head=d_head))


#: What a wrong import does to the configuration and the tensors of the right one.
WRONG: dict[str, Callable[[Any, State], tuple[Any, State]]] = {
    "ids off by one": lambda c, s: (c, _changed(s, r"embedding\.", lambda t: t.roll(1, 0))),
    "output tied": lambda c, s: (c, s | {"output.weight": s["embedding.weight"]}),
    "gain read as 1 + gain": lambda c, s: (c, _changed(s, r"norm.*\.weight", lambda t: t + 1)),
    "w_o not transposed": lambda c, s: (c, _changed(s, r"w_o\.weight", lambda t: t.mT.contiguous())),
    "q and k exchanged": lambda c, s: (c, _exchanged(s, ("w_q", "w_k"), ("norm_q", "norm_k"))),
    "norms exchanged": lambda c, s: (c, _exchanged(s, ("norm_attention", "norm_feed_forward"))),
    "biases dropped": lambda c, s: (c, _changed(s, "bias", torch.zeros_like)),
    "rotary halves": lambda c, s: (c, _halves(s, c.d_head)),
    "rotary base": lambda c, s: (replace(c, rope_base=500_000.0), s),
    "last layer new": lambda c, s: (c, last_layer(s, "0.02")),
    "ReLU for ReLU²": lambda c, s: (replace(c, activation="relu"), s),
}
#: What undoes the mistakes that one token cannot show; an exchange is its own inverse.
REPAIRS: dict[str, Callable[[Any, State], tuple[Any, State]]] = {
    "rotary base": lambda c, s: (replace(c, rope_base=10_000.0), s),
    "rotary halves": lambda c, s: (c, _neighbors(s, c.d_head)),
    "q and k exchanged": WRONG["q and k exchanged"],
}
WINDOW = "window of 32"


def lettered() -> dict[str, str]:
    """Return the right import and the wrong ones by letters, in an order by chance.

    >>> sorted(lettered().values()) == sorted(["right", *WRONG])
    True
    """
    names = ["right", *WRONG]
    Random(19).shuffle(names)
    return dict(zip(ascii_uppercase, names, strict=False))


def wrong_import(model: nn.Module, name: str) -> nn.Module:
    """Import a model anew, wrongly.

    Args:
        model: A language model or a translator with rotary positions.
        name: Of :data:`WRONG`; "right" for the right import, "window of 32" for a limit on attention.

    Returns:
        Another model of the same class, in evaluation mode, as the mistake leaves it: what the program finds
        missing is filled in.

    Raises:
        ValueError: If there is no such mistake.

    >>> from exformer import load_model
    >>> model = load_model("shakespeare-char").model
    >>> wrong_import(model, "rotary base").config.rope_base
    500000.0
    """
    config: Any = model.config
    state = {key: tensor.detach().clone() for key, tensor in model.state_dict().items()}
    if name == WINDOW:
        config = replace(config, window=32)
    elif name != "right":
        if name not in WRONG:
            raise ValueError(f"there is no mistake {name!r}: expected right, {WINDOW}, {', '.join(WRONG)}")
        config, state = WRONG[name](config, state)
    return _like(model, config, state)


def repaired(model: nn.Module, mistake: str) -> nn.Module:
    """Undo a mistake, whether or not the model has it.

    Args:
        model: A wrong import with rotary positions whose right base is 10,000.
        mistake: Of :data:`REPAIRS`.

    Returns:
        Another model of the same class, in evaluation mode.

    Raises:
        ValueError: If there is no repair of this mistake.

    >>> from exformer import load_model
    >>> wrong = wrong_import(load_model("shakespeare-char").model, "rotary base")
    >>> repaired(wrong, "rotary base").config.rope_base
    10000.0
    """
    if mistake not in REPAIRS:
        raise ValueError(f"there is no repair of {mistake!r}: expected {', '.join(REPAIRS)}")
    return _like(model, *REPAIRS[mistake](model.config, model.state_dict()))


def _like(model: nn.Module, config: Any, state: State) -> nn.Module:
    """Make a model of the same class and type from a configuration and a copy of the tensors."""
    imported = type(model)(config).to(next(model.parameters()).dtype).eval()
    imported.load_state_dict(state)
    return imported


@torch.no_grad()
def largest_gaps(model: Any, right: Any, length: int, *, n: int = 50) -> float:
    """Return the largest difference of the logits after random prompts of a length, in float64.

    All tokens are tried where the length is 1.
    """
    rng = torch.Generator().manual_seed(length)
    size = right.config.vocab_size
    ids = torch.arange(size)[:, None] if length == 1 else torch.randint(size, (n, length), generator=rng)
    found = [each.double()(ids)[:, -1] for each in (model, right)]
    for each in (model, right):
        each.float()
    return (found[0] - found[1]).abs().max().item()
