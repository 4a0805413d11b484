"""Looking inside: the attention weights of a forward pass, by the names of the modules."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

#: For each block that records: the names of the model's modules, and the weights recorded so far.
_RECORDINGS: ContextVar[tuple[tuple[dict[nn.Module, str], dict[str, Tensor]], ...]] = ContextVar(
    "recordings", default=()
)


@contextmanager
def record_attention(model: nn.Module) -> Iterator[dict[str, Float[Tensor, "batch heads query key"]]]:
    """Record the weights of every attention of a model while the block runs.

    Args:
        model: A model in evaluation mode, because dropout would change the weights.

    Yields:
        A dictionary that fills as the model runs, from the name of each attention to its weights. Names are
        those of ``named_modules``: ``"layers.0.self_attention"``, ``"decoder.1.cross_attention"``; an
        attention module by itself has the name of its class. Each row of weights sums to 1, or is zero where
        nothing may be attended to. A compiled model runs without its compiled code. A second pass replaces
        the weights of the first.

    Raises:
        ValueError: If the model is in training mode.

    >>> import torch
    >>> from torch import nn
    >>> from exformer.nn.multi_head import MultiHeadAttention
    >>> stack = nn.ModuleDict({"first": MultiHeadAttention(8, n_heads=2)}).eval()
    >>> x = torch.ones(1, 3, 8)
    >>> with record_attention(stack) as weights:
    ...     output = stack["first"](x, x, x)
    >>> weights["first"].shape
    torch.Size([1, 2, 3, 3])
    """
    if model.training:
        raise ValueError("attention is recorded in evaluation mode, without dropout: call model.eval() first")
    weights: dict[str, Tensor] = {}
    names = {module: name or type(module).__name__ for name, module in model.named_modules()}
    token = _RECORDINGS.set((*_RECORDINGS.get(), (names, weights)))
    # Compiled code records nothing; there is none before torch._dynamo is imported, which takes seconds.
    compiler = torch.compiler.set_stance("force_eager") if "torch._dynamo" in sys.modules else nullcontext()
    try:
        with compiler:
            yield weights
    finally:
        _RECORDINGS.reset(token)


def recorder(module: nn.Module) -> Callable[[Tensor], None] | None:
    """Return a function that records the weights of an attention, or None if nothing records it."""
    if torch.compiler.is_compiling():  # a context variable would break the graph
        return None
    recordings = [(names[module], weights) for names, weights in _RECORDINGS.get() if module in names]
    if not recordings:
        return None

    def record(new_weights: Tensor) -> None:
        for name, weights in recordings:
            weights[name] = new_weights.detach()

    return record
