"""LoRA: a trained model learns something new by matrices of low rank, while its own weights are frozen."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from exformer.check_settings import check_integer


class LoRALinear(nn.Linear):
    r"""A frozen linear layer, to whose output the product of two small matrices adds.

    .. math:: y = W x + b + \frac{\alpha}{r} B A x

    A starts at random and B at zero, so that the model begins as it was.

    Args:
        linear: The layer; its parameters are shared, and frozen.
        rank: r, the number of rows of A and of columns of B.
        alpha: :math:`\alpha`; doubled, it lets the product count twice as much.

    Source:
        Hu et al. 2022, section 4.1.

    >>> layer = LoRALinear(nn.Linear(4, 6), rank=2, alpha=8.0)
    >>> {name: tuple(p.shape) for name, p in layer.named_parameters() if p.requires_grad}
    {'lora_a': (2, 4), 'lora_b': (6, 2)}
    """

    def __init__(self, linear: nn.Linear, *, rank: int, alpha: float) -> None:
        super().__init__(linear.in_features, linear.out_features, device="meta")  # takes no memory
        self.weight, self.bias = linear.weight, linear.bias
        self.requires_grad_(False)
        self.rank, self.alpha = check_integer("rank", rank, least=1), alpha
        self.lora_a = nn.Parameter(self.weight.new_empty(self.rank, self.in_features))
        self.lora_b = nn.Parameter(self.weight.new_zeros(self.out_features, self.rank))
        nn.init.kaiming_uniform_(self.lora_a, a=math.sqrt(5))  # as the weight of nn.Linear

    def forward(self, input: Float[Tensor, "*batch columns"]) -> Float[Tensor, "*batch rows"]:
        """Apply the layer, and add what was learned."""
        learned = F.linear(F.linear(input, self.lora_a), self.lora_b)
        return super().forward(input) + self.alpha / self.rank * learned

    @torch.no_grad()
    def merge(self) -> nn.Linear:
        """Return a linear layer with the product added to the weight: one matrix, the same outputs."""
        linear = nn.Linear(self.in_features, self.out_features, device="meta")
        linear.weight, linear.bias = self.weight, self.bias
        linear.weight += self.alpha / self.rank * self.lora_b @ self.lora_a
        return linear

    def extra_repr(self) -> str:
        """Return the settings that ``print(model)`` shows."""
        return f"{super().extra_repr()}, rank={self.rank}, alpha={self.alpha:g}"


def add_lora(
    model: nn.Module, *, rank: int = 8, alpha: float = 16.0, targets: Sequence[str] = ("w_q", "w_v")
) -> nn.Module:
    """Freeze a model, and add trainable matrices of low rank to some of its linear layers.

    The model is changed, and trains as before: optimizers of the library take what is not frozen.

    Args:
        model: It generates and is evaluated as before.
        rank: Of the matrices.
        alpha: Their weight, see :class:`LoRALinear`.
        targets: The last parts of the layers' names: ``w_q``, ``w_k``, ``w_v``, ``w_o`` of an attention,
            ``w_1``, ``w_2``, ``w_3`` of a feed-forward network, or longer, such as ``self_attention.w_q``.

    Returns:
        The model.

    Raises:
        ValueError: If a target is no linear layer of the model, one shares its weight with another part
            (merged, it would change both), or the model has such matrices already.

    Source:
        Hu et al. 2022, section 4.2, for the queries and values.

    >>> from exformer import DecoderLM, DecoderLMConfig
    >>> model = add_lora(DecoderLM(DecoderLMConfig(11, d_model=8, n_heads=2, n_layers=1)), rank=2)
    >>> [name for name, p in model.named_parameters() if p.requires_grad][:2]
    ['layers.0.self_attention.w_q.lora_a', 'layers.0.self_attention.w_q.lora_b']
    """
    if any(True for _ in lora_layers(model)):
        raise ValueError("the model has LoRA already: merge_lora(model) first, or load the model anew")
    check_integer("rank", rank, least=1)
    found = _find_targets(model, [targets] if isinstance(targets, str) else targets)
    model.requires_grad_(False)
    for name in found:
        parent, _, own = name.rpartition(".")
        linear: Any = model.get_submodule(name)
        setattr(model.get_submodule(parent), own, LoRALinear(linear, rank=rank, alpha=alpha))
    return model


def merge_lora(model: nn.Module) -> nn.Module:
    """Add what LoRA has learned to the weights, and make the model what it was: as large, and as fast.

    All parameters can be trained again. The outputs stay the same, but for rounding.

    Args:
        model: It is changed.

    Returns:
        The model.

    Raises:
        ValueError: If the model has no LoRA.

    Source:
        Hu et al. 2022, section 4.1, "no additional inference latency".

    >>> from exformer import DecoderLM, DecoderLMConfig, add_lora
    >>> model = DecoderLM(DecoderLMConfig(11, d_model=8, n_heads=2, n_layers=1))
    >>> names = list(model.state_dict())
    >>> list(merge_lora(add_lora(model, rank=2)).state_dict()) == names
    True
    """
    layers = list(lora_layers(model))
    if not layers:
        raise ValueError("the model has no LoRA that could be merged: add_lora(model) adds it")
    for name, layer in layers:
        parent, _, own = name.rpartition(".")
        setattr(model.get_submodule(parent), own, layer.merge())
    return model.requires_grad_(True)


def lora_layers(model: nn.Module) -> Iterator[tuple[str, LoRALinear]]:
    """Yield the layers of a model that have LoRA, with their names."""
    for name, module in model.named_modules():
        if isinstance(module, LoRALinear):
            yield name, module


def check_merged(model: nn.Module) -> None:
    """Check that a model has no LoRA, where it is written for programs that know none.

    Raises:
        ValueError: If it has.
    """
    if any(True for _ in lora_layers(model)):
        raise ValueError(
            "the model has LoRA: merge_lora(model) first, or save_adapter saves what it has learned"
        )


def _find_targets(model: nn.Module, targets: Sequence[str]) -> list[str]:
    """Return the names of the linear layers that end in the targets."""
    linear = [name for name, module in model.named_modules() if isinstance(module, nn.Linear)]
    found = []
    for target in targets:
        own = [name for name in linear if f".{name}".endswith(f".{target}")]
        if not own:
            ends = sorted({name.rpartition(".")[2] for name in linear})
            raise ValueError(
                f"targets must be linear layers of the model ({', '.join(ends)}), got {target!r}: an "
                "embedding is none, and neither is an output that is tied to it"
            )
        found += [name for name in own if name not in found]
    owners: dict[int, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        owners.setdefault(id(parameter), []).append(name)
    for name in found:
        shared = owners[id(model.get_parameter(f"{name}.weight"))]
        if len(shared) > 1:
            raise ValueError(
                f"{' and '.join(shared)} are one tied weight, and merging would change both: choose other "
                "targets, or untie them"
            )
    return found
