"""A model that leaves work out would win any race: with our weights, all must find our loss and gradient."""

import math
import re
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from bench.setting import Contender
from exformer.hub.hugging_face.folder import without_scale
from exformer.hub.hugging_face.names import GPT2, MARIAN
from exformer.hub.hugging_face.tensors import to_theirs

#: Our sublayers in their order.
SUBLAYERS = {"encoder": ("self", "feed_forward"), "decoder": ("self", "cross", "feed_forward")}


def _numbered(found: re.Match[str]) -> str:
    """Return the name of a sublayer or its norm in x-transformers' stacks, which number all sublayers."""
    stack, layer, kind, part = found.groups()
    kinds = SUBLAYERS[stack]
    number = int(layer) * len(kinds) + kinds.index(kind)
    place = "0.2" if part == "norm" else "1"  # 0.0 and 0.1 are norms before the sublayer and before the sum
    return f"{stack}.attn_layers.layers.{number}.{place}."


#: What our parameters are called elsewhere: patterns and what replaces them, one after the other.
NAMES = {
    "TorchTranslator": (
        (r"norm_(attention|self)", "norm1"),
        (r"norm_cross", "norm2"),
        (r"(decoder.*)norm_feed_forward", r"\1norm3"),
        (r"norm_feed_forward", "norm2"),
        (r"^(encoder|decoder)", r"transformer.\1.layers"),
        (r"self_attention", "self_attn"),
        (r"cross_attention", "multihead_attn"),
        (r"w_o", "out_proj"),
        (r"w_([qkv])\.(\w+)", r"in_proj_\2.\1"),  # queries, keys, values: one matrix, see _gather
        (r"feed_forward\.w_", "linear"),
    ),
    "TorchGPT": (
        (r"^norm", "encoder.norm"),
        (r"^layers", "encoder.layers"),
        (r"norm_attention", "norm1"),
        (r"norm_feed_forward", "norm2"),
        (r"self_attention", "self_attn"),
        (r"w_o", "out_proj"),
        (r"w_([qkv])\.(\w+)", r"in_proj_\2.\1"),
        (r"feed_forward\.w_", "linear"),
    ),
    "XTranslator": (
        (r"src_embedding\.weight", "encoder.token_emb.emb.weight"),
        (r"tgt_embedding\.weight", "decoder.token_emb.emb.weight"),
        (r"norm_attention", "norm_self"),
        (r"norm_(self|cross|feed_forward)", r"\1.norm"),
        (r"(self|cross)_attention", r"\1.block"),
        (r"feed_forward\.w_", "feed_forward.block.ff."),
        (r"^(encoder|decoder)\.(\d+)\.(self|cross|feed_forward)\.(norm|block)\.", _numbered),
        (r"w_([qkv])", r"to_\1"),
        (r"w_o", "to_out"),
        (r"ff\.1", "ff.0.0"),
    ),
}

#: Hugging Face's models, whose names the library knows, and the table that is their output layer, too.
FAMILIES = {
    "GPT2LMHeadModel": (GPT2, "transformer.wte.weight"),
    "MarianMTModel": (MARIAN, "model.decoder.embed_tokens.weight"),
}


def _gather(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Stack `x.q`, `x.k` and `x.v` as `x`."""
    gathered: dict[str, list[Tensor]] = {}
    for name, tensor in state.items():
        gathered.setdefault(re.sub(r"\.[qkv]$", "", name), []).append(tensor)
    return {name: torch.cat(parts) for name, parts in gathered.items()}


def copy_weights(ours: nn.Module, theirs: nn.Module) -> None:
    """Copy all our parameters to a peer, and to Marian its position table, with its columns in order.

    Args:
        ours: An EncoderDecoder, or a DecoderLM.
        theirs: The peer; its class has an entry in `FAMILIES` or in `NAMES`.

    Raises:
        ValueError: If a parameter of the peer gets none of our numbers.
    """
    kind, state = type(theirs).__name__, dict(ours.state_dict())
    if kind in FAMILIES:
        family, table = FAMILIES[kind]
        state = to_theirs(without_scale(ours.config, state)[1], family, d_head=ours.config.d_head)
        state["lm_head.weight"] = state[table]
    else:
        for pattern, name in NAMES[kind]:
            state = {re.sub(pattern, name, key): tensor for key, tensor in state.items()}
        state = _gather(state)
    if kind == "XTranslator":
        state["decoder.to_logits.weight"] = ours.tgt_embedding.weight
    if kind == "MarianMTModel":
        for side, positions in (("encoder", ours.src_positions), ("decoder", ours.tgt_positions)):
            state[f"model.{side}.embed_positions.weight"] = positions.weight
    missing, unexpected = theirs.load_state_dict(state, strict=False)
    if unexpected or set(missing) - {"final_logits_bias"}:  # Marian's buffer of zeros
        raise ValueError(f"{missing} get nothing, {unexpected} go nowhere: mend NAMES")


def loss_and_slope(contender: Contender, batches: list[Any]) -> tuple[float, float]:
    """Return the mean loss and the norm of its gradient, without dropout.

    Args:
        contender: The model.
        batches: All of them count.

    Returns:
        Nats a token, and nats a token for a step of length 1 in the space of our parameters.
    """
    model, factors = contender.model, contender.factors
    model.eval()
    model.zero_grad(set_to_none=True)
    loss = sum(contender.compute(batch) for batch in batches) / len(batches)
    loss.backward()
    learned = [(name, p.grad) for name, p in model.named_parameters() if p.grad is not None]
    slopes = [factors.get(name, 1.0) * slope.double() for name, slope in learned]
    slope = torch.stack([slope.square().sum() for slope in slopes]).sum().sqrt()
    model.zero_grad(set_to_none=True)
    model.train()
    return loss.item(), slope.item()


def check_equal_work(contenders: dict[str, Contender], batches: list[Any]) -> dict[str, float]:
    """Copy the first contender's weights to all, and check that all compute the same.

    They must agree in float32, and, as far as rounding lets them, in the precision of the race; one that
    approximates something must agree as far as that allows.

    Args:
        contenders: Ours first.
        batches: What they are tried on.

    Returns:
        The loss of each, in the precision of the race.

    Raises:
        ValueError: If a number of parameters, a loss or a gradient differs.
    """
    ours, *peers = contenders.values()
    for peer in peers:
        copy_weights(ours.model, peer.model)
    exact = {name: replace(contender, precision="float32") for name, contender in contenders.items()}
    losses = _same(exact, batches, of_loss=1e-5, of_slope=1e-4)
    if ours.precision == "float32":
        return losses
    return _same(contenders, batches, of_loss=5e-3, of_slope=5e-2)


def _same(
    contenders: dict[str, Contender], batches: list[Any], *, of_loss: float, of_slope: float
) -> dict[str, float]:
    """Check that sizes, losses and gradients are equal up to these relative differences."""
    found = {name: (c.n_parameters(), *loss_and_slope(c, batches)) for name, c in contenders.items()}
    n_parameters, loss, slope = next(iter(found.values()))
    for name, (n, its_loss, its_slope) in found.items():
        allowed = contenders[name].tolerance
        same = math.isclose(its_loss, loss, rel_tol=max(of_loss, allowed))
        same &= math.isclose(its_slope, slope, rel_tol=max(of_slope, allowed))
        if n != n_parameters or not same:
            raise ValueError(
                f"{name} has {n} parameters, loss {its_loss}, gradient {its_slope} with our weights; "
                f"ours has {n_parameters}, {loss}, {slope}: these models do not do the same work"
            )
    return {name: its_loss for name, (_, its_loss, _) in found.items()}
