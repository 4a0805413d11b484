"""The tensors of a family <-> those of our modules: other names, and for some another order of the numbers.

GPT-2 keeps its matrices transposed, and those of queries, keys and values in one. Llama rotates column i of a
head with column i + d_head/2, where we rotate neighbors: so the rows of the matrices that make queries and
keys are in another order. BERT and Marian differ by names alone.
"""

import re
from collections.abc import Mapping

import torch
from jaxtyping import Float
from torch import Tensor

from exformer.hub.hugging_face.names import GPT2, Family, their_name
from exformer.storage.check_weights import first_names


def neighbors(matrix: Float[Tensor, "*shape"], *, d_head: int) -> Float[Tensor, "*shape"]:
    """Put rows i and i + d_head/2 of each head side by side: the pairs that we rotate.

    >>> neighbors(torch.arange(8.0), d_head=4).int().tolist()
    [0, 2, 1, 3, 4, 6, 5, 7]
    """
    return matrix.unflatten(0, (-1, 2, d_head // 2)).transpose(1, 2).flatten(0, 2)


def halves(matrix: Float[Tensor, "*shape"], *, d_head: int) -> Float[Tensor, "*shape"]:
    """Put the first rows of all pairs of a head before the second ones: the inverse of :func:`neighbors`.

    >>> halves(torch.tensor([0.0, 2, 1, 3]), d_head=4).int().tolist()
    [0, 1, 2, 3]
    """
    return matrix.unflatten(0, (-1, d_head // 2, 2)).transpose(1, 2).flatten(0, 2)


def in_our_order(name: str, tensor: Tensor, family: Family, *, d_head: int) -> Tensor:
    """Convert a tensor of theirs to our order."""
    if family is GPT2 and name.startswith("layers."):
        tensor = tensor.mT if tensor.dim() == 2 else tensor
        third = re.search(r"w_([qkv])\.", name)
        return tensor.chunk(3)["qkv".index(third[1])] if third else tensor
    if family.halves and re.search(r"w_[qk]\.", name):
        return neighbors(tensor, d_head=d_head)
    return tensor


def to_ours(
    tensors: Mapping[str, Tensor], shapes: Mapping[str, torch.Size], family: Family, *, d_head: int
) -> dict[str, Tensor]:
    """Return the tensors of a family under our names and in our order.

    Args:
        tensors: What the files hold, by its names there.
        shapes: The shapes of our model's parameters, by our names.
        family: Of :data:`~exformer.hub.hugging_face.names.FAMILIES`.
        d_head: Width of a head.

    Raises:
        ValueError: If a tensor is missing or left over, or has another shape.
    """
    theirs = {_full_name(name, tensors, family): tensor for name, tensor in tensors.items()}
    ours: dict[str, Tensor] = {}
    used: set[str] = set()
    missing = []
    for name, shape in shapes.items():
        wanted = their_name(name, family)
        other = next((n for n in (wanted, *family.copies.get(wanted, ())) if n in theirs), None)
        if other is None:
            missing.append(wanted)
            continue
        used.add(other)
        tensor = in_our_order(name, theirs[other], family, d_head=d_head)
        if tensor.numel() != shape.numel() or (tensor.shape != shape and name != "output_bias"):
            raise ValueError(
                f"{other} has the shape {tuple(theirs[other].shape)}, which does not fit {name} "
                f"{tuple(shape)}: the weights are not those of this config.json"
            )
        ours[name] = tensor.reshape(shape).contiguous()
    left = [name for name in theirs.keys() - used if not _is_known(name, theirs, used, family)]
    if missing or left:
        raise ValueError(
            f"the weights do not fit {family.architecture}: missing {first_names(missing)}; left over "
            f"{first_names(left)}"
        )
    return ours


def to_theirs(state: Mapping[str, Tensor], family: Family, *, d_head: int) -> dict[str, Tensor]:
    """Return the tensors of our model under a family's names and in its order; see :func:`to_ours`.

    Raises:
        ValueError: If the family has no such parameter.
    """
    parts: dict[str, list[Tensor]] = {}
    for name, tensor in state.items():  # queries, keys, values in this order
        parts.setdefault(their_name(name, family), []).append(
            _in_their_order(name, tensor, family, d_head=d_head)
        )
    transposed = family is GPT2
    theirs = {}
    for name, tensors in parts.items():
        whole = torch.cat(tensors) if len(tensors) > 1 else tensors[0]
        theirs[name] = (whole.mT if transposed and ".h." in name and whole.dim() == 2 else whole).contiguous()
    return theirs


def _in_their_order(name: str, tensor: Tensor, family: Family, *, d_head: int) -> Tensor:
    """Convert a tensor of ours to their order."""
    if family.halves and re.search(r"w_[qk]\.", name):
        return halves(tensor, d_head=d_head)
    return tensor[None] if family.names.get(name) == "final_logits_bias" else tensor


def _full_name(name: str, tensors: Mapping[str, Tensor], family: Family) -> str:
    """Return a name as today's files have it: old ones lack the prefix, or call a norm's parameters else."""
    name = name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")
    if name.startswith(family.heads) or any(each.startswith(family.prefix) for each in tensors):
        return name
    return family.prefix + name


def _is_known(name: str, theirs: Mapping[str, Tensor], used: set[str], family: Family) -> bool:
    """Return whether a tensor that is left over is ignored, or a copy of one that was used."""
    if any(re.search(pattern, name) for pattern in family.ignored):
        return True
    sources = [source for source, copies in family.copies.items() if name in (source, *copies)]
    groups = [{source, *family.copies[source]} & used for source in sources]
    return any(torch.equal(theirs[name], theirs[each]) for group in groups for each in group)
