"""Known mistakes, each with its hint: the import of a GPT-2, a check of an import by short prompts."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from exformer_lessons.exercises.grading import Mistake

State = dict[str, Tensor]
#: From ids to logits (position, token).
Logits = Callable[[list[int]], Tensor]

#: What two imports can differ in, as prompts of one to three tokens show it.
KINDS = ("same", "ids", "one token", "attention", "farther")

_BLOCK = "transformer.h.0."
_BOTH = ("weight", "bias")
_NAMES = {
    "embedding.weight": "transformer.wte.weight",
    "positions.weight": "transformer.wpe.weight",
    **{
        f"{ours}.{leaf}": f"{theirs}.{leaf}"
        for ours, theirs in {
            "layers.0.norm_attention": f"{_BLOCK}ln_1",
            "layers.0.norm_feed_forward": f"{_BLOCK}ln_2",
            "layers.0.self_attention.w_o": f"{_BLOCK}attn.c_proj",
            "layers.0.feed_forward.w_1": f"{_BLOCK}mlp.c_fc",
            "layers.0.feed_forward.w_2": f"{_BLOCK}mlp.c_proj",
            "norm": "transformer.ln_f",
        }.items()
        for leaf in ("weight", "bias")
    },
}


def gpt2(tensors: State) -> State:
    """Return the tensors of a GPT-2 with one layer, under our names and in our order."""
    state = {ours: tensors[theirs] for ours, theirs in _NAMES.items()}
    state = {n: t.mT if n.startswith("layers") and t.dim() == 2 else t for n, t in state.items()}
    for leaf, tensor in (("weight", _joined(tensors).mT), ("bias", tensors[f"{_BLOCK}attn.c_attn.bias"])):
        for name, part in zip("qkv", tensor.chunk(3), strict=True):
            state[_of(name, leaf)] = part
    return state


def _joined(tensors: State) -> Tensor:
    return tensors[f"{_BLOCK}attn.c_attn.weight"]


def _of(name: str, leaf: str = "weight") -> str:
    return f"layers.0.self_attention.w_{name}.{leaf}"


def _but(change: Callable[[State, State], State]) -> Callable[[State], State]:
    """Make a mistake of what is changed in the right import, given that and the file."""
    return lambda tensors: (lambda state: state | change(state, tensors))(gpt2(tensors))


def _turned(*names: str) -> Callable[[State], State]:
    return _but(lambda state, _: {_of(name): state[_of(name)].mT for name in names})


def _order(order: str, *leaves: str) -> Callable[[State], State]:
    """Take the parts of the joined matrix, or of its bias, in another order."""
    return _but(
        lambda state, _: {
            _of(name, leaf): state[_of(other, leaf)]
            for name, other in zip("qkv", order, strict=True)
            for leaf in leaves
        }
    )


def _by_heads(state: State, _: State) -> State:
    rows = torch.cat([state[_of(name)] for name in "qkv"]).unflatten(0, (3, 3, -1))  # three heads
    return {_of(name): rows[:, i].flatten(0, 1) for i, name in enumerate("qkv")}


def _reshaped(*names: str) -> Callable[[State], State]:
    return _but(
        lambda state, tensors: {name: tensors[_NAMES[name]].reshape(state[name].shape) for name in names}
    )


def _reshaped_squares(_: State, tensors: State) -> State:
    joined = _joined(tensors)
    return {_of(name): part for name, part in zip("qkv", joined.reshape(3, -1, len(joined)), strict=True)}


def _norms(state: State, _: State) -> State:
    one, two = "layers.0.norm_attention", "layers.0.norm_feed_forward"
    return {f"{a}.{leaf}": state[f"{b}.{leaf}"] for a, b in ((one, two), (two, one)) for leaf in _BOTH}


_W_1, _W_2 = "layers.0.feed_forward.w_1.weight", "layers.0.feed_forward.w_2.weight"
_ORDERS = ("kqv", "vkq", "qvk", "kvq", "vqk")

#: Wrong ways to read the file of a GPT-2.
GPT2: dict[str, Mistake] = {
    "You do not transpose attn.c_proj: it is square, so its shape does not show it.": _turned("o"),
    "You cut c_attn right, but its parts are still (in, out): transpose each.": _turned("q", "k", "v"),
    "You transpose no square matrix: GPT-2 keeps all matrices of a layer as (in, out).": _turned(*"qkvo"),
    "You cut c_attn in another order: queries, keys, values.": tuple(
        _order(order, *leaves) for order in _ORDERS for leaves in (_BOTH, ("weight",))
    ),
    "You cut the bias of c_attn in another order than its matrix.": tuple(
        _order(order, "bias") for order in _ORDERS
    ),
    "You cut c_attn head by head: first come the queries of all heads, then all keys, then all values.": (
        _but(_by_heads),
    ),
    "You reshape c_attn to three squares: that puts its numbers elsewhere. Transpose, then cut.": (
        _but(_reshaped_squares),
        _but(lambda state, tensors: {name: t.mT for name, t in _reshaped_squares(state, tensors).items()}),
    ),
    "You reshape the network's matrices to the right shape: that puts their numbers elsewhere. Transpose.": (
        _reshaped(_W_1, _W_2),
        _reshaped(_W_1),
        _reshaped(_W_2),
        _reshaped(_of("o"), _W_1, _W_2),
    ),
    "You exchange the two norms of the layer: ln_1 is before attention.": _but(_norms),
    "You exchange the last norm with one of the layer: ln_f follows the last layer.": (
        _but(lambda s, _: {f"norm.{x}": s[f"layers.0.norm_attention.{x}"] for x in _BOTH}),
        _but(lambda s, _: {f"norm.{x}": s[f"layers.0.norm_feed_forward.{x}"] for x in _BOTH}),
    ),
    "You leave biases at 0: the file has one for each matrix of the layer.": (
        _but(lambda s, _: {n: t * 0 for n, t in s.items() if n.endswith("bias")}),
        _but(lambda s, _: {n: t * 0 for n, t in s.items() if n.endswith("bias") and ".w_" in n}),
        _but(lambda s, _: {_of(n, "bias"): s[_of(n, "bias")] * 0 for n in "qkv"}),
    ),
    "You leave the table of positions at 0: it is wpe.": _but(
        lambda s, _: {"positions.weight": s["positions.weight"] * 0}
    ),
}  # fmt: skip


#: Whether ours answers the id i + k as theirs answers i, by i and k.
Fits = Callable[[int, int], bool]


def _one_shift(fits: Fits, n: int) -> bool:
    return any(all(fits(i, k) for i in range(n)) for k in range(1, n))


def check(ours: Logits, theirs: Logits, n: int, *, tolerance: float = 1e-4) -> str:
    """Return the kind of the difference between two imports of a model with n tokens."""
    return _check(ours, theirs, n, tolerance=tolerance)


def _check(
    ours: Logits,
    theirs: Logits,
    n: int,
    *,
    tolerance: float = 1e-4,
    ones: Any = None,
    pairs: Any = None,
    row: int | slice = slice(None),
    triples: bool = True,
    shift: Callable[[Fits, int], bool] = _one_shift,
) -> str:
    def differ(prompts: Any) -> bool:
        return any(_apart(ours(p)[row], theirs(p)[row]) > tolerance for p in prompts)

    every = range(n)
    if differ(ones or [[a] for a in every]):
        found = shift(lambda i, k: _apart(ours([(i + k) % n])[row], theirs([i])[row]) <= tolerance, n)
        return "ids" if found else "one token"
    if differ(pairs if pairs is not None else [[a, b] for a in every for b in every]):
        return "attention"
    if triples and differ([[a, b, c] for a in every for b in every for c in every]):
        return "farther"
    return "same"


def _apart(a: Tensor, b: Tensor) -> float:
    return (a - b).abs().max().item()


def _with_shift(shift: Callable[[Fits, int], bool]) -> Callable[[Logits, Logits, int], str]:
    return lambda ours, theirs, n: _check(ours, theirs, n, shift=shift)


def _by_argmax(ours: Logits, theirs: Logits, n: int) -> str:
    """Compare the most probable tokens alone."""

    def best(model: Logits) -> Logits:
        return lambda ids: model(ids).argmax(dim=-1, keepdim=True).double()

    return _check(best(ours), best(theirs), n)


def _by_shape(ours: Logits, theirs: Logits, n: int) -> str:
    return "same" if ours([0]).shape == theirs([0]).shape else "one token"


def _far_is_attention(ours: Logits, theirs: Logits, n: int) -> str:
    return {"farther": "attention"}.get(found := check(ours, theirs, n), found)


#: Wrong ways to find the kind of a difference.
CHECK: dict[str, Mistake] = {
    "You ask for equality to the last digit: float32 and float64 round differently. Allow about 1e-4.": (
        lambda ours, theirs, n: _check(ours, theirs, n, tolerance=0.0),
        lambda ours, theirs, n: _check(ours, theirs, n, tolerance=1e-9),
    ),
    "You allow too much: a wrong rotary base moves few logits at a distance of one, and no maximum.": (
        lambda ours, theirs, n: _check(ours, theirs, n, tolerance=0.1),
        lambda ours, theirs, n: _check(ours, theirs, n, tolerance=0.3),
        lambda ours, theirs, n: _check(ours, theirs, n, tolerance=1.0),
        _by_argmax,
    ),
    "You compare shapes: all of these imports have the right shapes.": _by_shape,
    "You try one token only: where one row of a table is wrong, the others show nothing.": (
        lambda ours, theirs, n: _check(ours, theirs, n, ones=[[0]]),
        lambda ours, theirs, n: _check(ours, theirs, n, ones=[[1]]),
    ),
    "Two tokens show you nothing: a repeated token hides the weights of attention. Try every pair.": (
        lambda ours, theirs, n: _check(ours, theirs, n, pairs=[[a, a] for a in range(n)]),
        lambda ours, theirs, n: _check(ours, theirs, n, pairs=[]),
    ),
    "You compare the first position: it has seen one token. Take all of them.": lambda ours, theirs, n: (
        _check(ours, theirs, n, row=0)
    ),
    "You stop at two tokens: a window that is too short shows at the first token beyond it.": (
        lambda ours, theirs, n: _check(ours, theirs, n, triples=False)
    ),
    "You call attention what two tokens do not show: if only three do, it is farther.": _far_is_attention,
    "You do not look for shifted ids: is each row of ours a row of theirs, by one shift?": _with_shift(
        lambda fits, n: False
    ),
    "You try one or two shifts: k may be any number from 1 to n - 1.": (
        _with_shift(lambda fits, n: all(fits(i, 1) for i in range(n))),
        _with_shift(lambda fits, n: all(fits(i, n - 1) for i in range(n))),
        _with_shift(lambda fits, n: any(all(fits(i, k) for i in range(n)) for k in (1, n - 1))),
    ),
    "Not every id has been compared with the same shift: one k must fit all of them, modulo n.": (
        _with_shift(lambda fits, n: any(fits(i, k) for i in range(n) for k in range(1, n))),
        _with_shift(lambda fits, n: all(any(fits(i, k) for k in range(1, n)) for i in range(n))),
        _with_shift(lambda fits, n: any(fits(0, k) for k in range(1, n))),
        _with_shift(lambda fits, n: any(all(fits(i, k) for i in range(n - k)) for k in range(1, n))),
    ),
    "You say the same word in every case.": tuple(
        (lambda word: lambda ours, theirs, n: word)(kind) for kind in KINDS[1:]
    ),
}
