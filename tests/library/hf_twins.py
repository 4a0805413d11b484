"""Hugging Face's models as oracles: which of our parameters is which of theirs, copied, and compared.

Three of their habits need more than names. GPT-2 keeps its matrices transposed, queries, keys and values in
one. Its tied table is not scaled on the way in, as ours is: our table times √d_model is theirs, and our last
normalization, √d_model times theirs, makes up for it on the way out. So they are one function. And Llama
rotates column i of a head with column i + d_head/2, where we rotate neighbors: the rows of the matrices that
make queries and keys are the same, in another order.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch_twins import close

#: What our parameters are called there: patterns and what replaces them, one after the other.
NAMES = {
    "BertForMaskedLM": (
        (r"^embedding\.weight", "bert.embeddings.word_embeddings.weight"),
        (r"^positions\.weight", "bert.embeddings.position_embeddings.weight"),
        (r"^segments\.weight", "bert.embeddings.token_type_embeddings.weight"),
        (r"^norm_embedding", "bert.embeddings.LayerNorm"),
        (r"^layers", "bert.encoder.layer"),
        (r"self_attention\.w_q", "attention.self.query"),
        (r"self_attention\.w_k", "attention.self.key"),
        (r"self_attention\.w_v", "attention.self.value"),
        (r"self_attention\.w_o", "attention.output.dense"),
        (r"norm_attention", "attention.output.LayerNorm"),
        (r"feed_forward\.w_1", "intermediate.dense"),
        (r"feed_forward\.w_2", "output.dense"),
        (r"norm_feed_forward", "output.LayerNorm"),
        (r"^transform", "cls.predictions.transform.dense"),
        (r"^norm_output", "cls.predictions.transform.LayerNorm"),
        (r"^output_bias", "cls.predictions.bias"),
    ),
    "GPT2LMHeadModel": (
        (r"^embedding\.weight", "transformer.wte.weight"),
        (r"^positions\.weight", "transformer.wpe.weight"),
        (r"^norm\.", "transformer.ln_f."),
        (r"^layers", "transformer.h"),
        (r"norm_attention", "ln_1"),
        (r"norm_feed_forward", "ln_2"),
        (r"self_attention\.w_[qkv]", "attn.c_attn"),
        (r"self_attention\.w_o", "attn.c_proj"),
        (r"feed_forward\.w_1", "mlp.c_fc"),
        (r"feed_forward\.w_2", "mlp.c_proj"),
    ),
    "LlamaForCausalLM": (
        (r"^embedding\.weight", "model.embed_tokens.weight"),
        (r"^output\.", "lm_head."),
        (r"^(norm|layers)\.", r"model.\1."),
        (r"norm_attention", "input_layernorm"),
        (r"norm_feed_forward", "post_attention_layernorm"),
        (r"self_attention\.w_(\w)", r"self_attn.\1_proj"),
        (r"feed_forward\.w_1", "mlp.gate_proj"),
        (r"feed_forward\.w_2", "mlp.down_proj"),
        (r"feed_forward\.w_3", "mlp.up_proj"),
    ),
    "MarianMTModel": (
        (r"^src_embedding\.weight", "model.encoder.embed_tokens.weight"),
        (r"^tgt_embedding\.weight", "model.decoder.embed_tokens.weight"),
        (r"^(encoder|decoder)\.", r"model.\1.layers."),
        (r"norm_(attention|self)", "self_attn_layer_norm"),
        (r"norm_cross", "encoder_attn_layer_norm"),
        (r"norm_feed_forward", "final_layer_norm"),
        (r"self_attention", "self_attn"),
        (r"cross_attention", "encoder_attn"),
        (r"w_o", "out_proj"),
        (r"w_([qkv])", r"\1_proj"),
        (r"feed_forward\.w_", "fc"),
    ),
}
# The heads of BERT's other models.
NAMES["BertForSequenceClassification"] = (
    (r"^head\.pooler", "bert.pooler.dense"),
    (r"^head\.output", "classifier"),
    *NAMES["BertForMaskedLM"],
)
NAMES["BertForTokenClassification"] = NAMES["BertForSequenceClassification"]
NAMES["MistralForCausalLM"] = NAMES["LlamaForCausalLM"]
NAMES["MixtralForCausalLM"] = (
    (r"feed_forward\.router", "mlp.gate"),
    (r"feed_forward\.experts\.\d+\.w_[13]\.weight", "mlp.experts.gate_up_proj"),
    (r"feed_forward\.experts\.\d+\.w_2\.weight", "mlp.experts.down_proj"),
    *NAMES["LlamaForCausalLM"],
)


@dataclass(frozen=True)
class Twin:
    """A parameter of ours, and where its numbers stand there: ours = factor · view(theirs)."""

    ours: nn.Parameter
    theirs: nn.Parameter
    view: Callable[[Tensor], Tensor] = lambda tensor: tensor
    factor: float = 1.0


def _gpt2(name: str, ours: nn.Parameter, theirs: nn.Parameter) -> Twin:
    root = math.sqrt(ours.size(-1))
    if name == "embedding.weight":
        return Twin(ours, theirs, factor=1 / root)
    if name.startswith("norm."):
        return Twin(ours, theirs, factor=root)
    third = re.search(r"w_([qkv])\.", name)
    if third:
        at, n = "qkv".index(third[1]), ours.size(0)
        return Twin(ours, theirs, lambda tensor: tensor[..., at * n : (at + 1) * n].t())
    matrix = re.search(r"w_\w\.weight", name)
    return Twin(ours, theirs, lambda tensor: tensor.t()) if matrix else Twin(ours, theirs)


def _llama(name: str, ours: nn.Parameter, theirs: nn.Parameter, *, d_head: int) -> Twin:
    if name == "embedding.weight":
        return Twin(ours, theirs, factor=1 / math.sqrt(ours.size(-1)))
    if expert := re.search(r"experts\.(\d+)\.w_([123])", name):  # Mixtral stacks them, w_1 above w_3
        d_ff, number = ours.size(0), int(expert[1])
        rows = {"1": slice(d_ff), "2": slice(None), "3": slice(d_ff, None)}[expert[2]]
        return Twin(ours, theirs, lambda tensor: tensor[number, rows])
    if re.search(r"w_[qk]\.", name):
        return Twin(ours, theirs, lambda tensor: neighbors(tensor, d_head=d_head))
    return Twin(ours, theirs)


def neighbors(matrix: Tensor, *, d_head: int) -> Tensor:
    """Put rows i and i + d_head/2 of each head side by side: pairs as we rotate them."""
    return matrix.unflatten(0, (-1, 2, d_head // 2)).transpose(1, 2).flatten(0, 2)


def hf_twins(named: dict[str, nn.Parameter], theirs: nn.Module) -> list[Twin]:
    """Pair our parameters, by name, with theirs; whatever learns there must have a twin."""
    found, kind = [], type(theirs).__name__
    for name, ours in named.items():
        other = name
        for pattern, replacement in NAMES[kind]:
            other = re.sub(pattern, replacement, other)
        twin = theirs.get_parameter(other)
        if kind == "GPT2LMHeadModel":
            found.append(_gpt2(name, ours, twin))
        elif kind in ("LlamaForCausalLM", "MistralForCausalLM", "MixtralForCausalLM"):
            found.append(
                _llama(
                    name, ours, twin, d_head=theirs.config.hidden_size // theirs.config.num_attention_heads
                )
            )
        else:
            found.append(Twin(ours, twin))
    used = {id(twin.theirs) for twin in found}
    left = [name for name, p in theirs.named_parameters() if p.requires_grad and id(p) not in used]
    assert not left, f"{left} have no twin"
    n = sum(p.numel() for p in theirs.parameters() if p.requires_grad)
    assert sum(twin.ours.numel() for twin in found) == n
    return found


def copy_from_hf(twins: list[Twin]) -> None:
    """Give our parameters the numbers of theirs."""
    with torch.no_grad():
        for twin in twins:
            assert twin.ours.shape == twin.view(twin.theirs).shape
            twin.ours.copy_(twin.factor * twin.view(twin.theirs))


def same_gradients_as_hf(twins: list[Twin]) -> None:
    """Hold the gradients of all twins equal; none may be missing, and not all may be zero.

    Where ours = factor · theirs, the gradient of theirs is factor · the gradient of ours.
    """
    for twin in twins:
        close(twin.factor * twin.ours.grad, twin.view(twin.theirs.grad))
    assert sum(twin.ours.grad.abs().max() > 1e-3 for twin in twins) > len(twins) / 2
