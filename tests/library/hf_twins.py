"""Hugging Face's models as oracles: small ones, and which of our parameters is which of theirs.

Names and the order of the numbers are those of :mod:`exformer.hub.hugging_face`; here are the names of
models that it does not read: BERT's heads of classes, and Mixtral, which stacks its experts.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch_twins import close, papers_formula, randomize
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertModel,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MarianConfig,
    MarianMTModel,
    MistralConfig,
    MistralForCausalLM,
    MixtralConfig,
    MixtralForCausalLM,
)
from transformers.models.mixtral.modeling_mixtral import MixtralTopKRouter

from exformer.hub.hugging_face.names import BERT, GPT2, LLAMA, MARIAN, their_name
from exformer.hub.hugging_face.tensors import in_our_order

VOCAB, MAX_LEN = 37, 24
ROTARY = LlamaForCausalLM | MistralForCausalLM | MixtralForCausalLM
FAMILIES = {
    "GPT2LMHeadModel": GPT2,
    "LlamaForCausalLM": LLAMA,
    "MistralForCausalLM": LLAMA,
    "MixtralForCausalLM": LLAMA,
    "BertForMaskedLM": BERT,
    "BertForSequenceClassification": BERT,
    "BertForTokenClassification": BERT,
    "MarianMTModel": MARIAN,
}
#: Names that the library has none for: patterns and what replaces them.
OTHERS = (
    (r"^head\.pooler", "bert.pooler.dense"),
    (r"^head\.output", "classifier"),
    (r"^layers\.(\d+)\.feed_forward\.router", r"model.layers.\1.mlp.gate"),
    (r"^layers\.(\d+)\..*experts\.\d+\.w_[13]\.weight", r"model.layers.\1.mlp.experts.gate_up_proj"),
    (r"^layers\.(\d+)\..*experts\.\d+\.w_2\.weight", r"model.layers.\1.mlp.experts.down_proj"),
)


@dataclass(frozen=True)
class Twin:
    """A parameter of ours, and where its numbers are there: ours = view(theirs)."""

    ours: nn.Parameter
    theirs: nn.Parameter
    view: Callable[[Tensor], Tensor]


def _view(name: str, ours: nn.Parameter, theirs: nn.Module) -> Callable[[Tensor], Tensor]:
    """Return what turns a parameter of theirs, or its gradient, into that of ours."""
    if expert := re.search(r"experts\.(\d+)\.w_([123])", name):  # Mixtral stacks them, w_1 above w_3
        d_ff, number = ours.size(0), int(expert[1])
        rows = {"1": slice(d_ff), "2": slice(None), "3": slice(d_ff, None)}[expert[2]]
        return lambda tensor: tensor[number, rows]
    c = theirs.config
    family, d_head = FAMILIES[type(theirs).__name__], c.hidden_size // c.num_attention_heads
    return lambda tensor: in_our_order(name, tensor, family, d_head=d_head)


def hf_twins(named: dict[str, nn.Parameter], theirs: nn.Module) -> list[Twin]:
    """Pair our parameters, by name, with theirs; whatever learns there must have a twin."""
    found = []
    for name, ours in named.items():
        matches = [re.sub(pattern, other, name) for pattern, other in OTHERS if re.search(pattern, name)]
        other = matches[0] if matches else their_name(name, FAMILIES[type(theirs).__name__])
        found.append(Twin(ours, theirs.get_parameter(other), _view(name, ours, theirs)))
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
            twin.ours.copy_(twin.view(twin.theirs))


def same_gradients_as_hf(twins: list[Twin]) -> None:
    """Hold the gradients of all twins equal; none may be missing, and not all may be zero."""
    for twin in twins:
        close(twin.ours.grad, twin.view(twin.theirs.grad))
    assert sum(twin.ours.grad.abs().max() > 1e-3 for twin in twins) > len(twins) / 2


class Router(MixtralTopKRouter):
    """Mixtral's router in the type of its vectors: its own softmax is in float32 always."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        logits = nn.functional.linear(x, self.weight)
        p, chosen = logits.softmax(dim=-1).topk(self.top_k, dim=-1)
        return logits, p / p.sum(dim=-1, keepdim=True), chosen


class Angles(nn.Module):
    """The angles of Llama in the type of its vectors, by the definition, because its own are in float32."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        rope, n = config.rope_parameters, config.head_dim or config.hidden_size // config.num_attention_heads
        frequency = [rope["rope_theta"] ** (-2 * i / n) for i in range(n // 2)]
        if rope["rope_type"] == "linear":
            frequency = [f / rope["factor"] for f in frequency]
        if rope["rope_type"] == "llama3":
            frequency = [self.scaled(f, rope) for f in frequency]
        self.frequency = torch.tensor(frequency, dtype=torch.float64)

    @staticmethod
    def scaled(f: float, rope: dict) -> float:
        length, wavelength = rope["original_max_position_embeddings"], 2 * math.pi / f
        if wavelength < length / rope["high_freq_factor"]:
            return f
        if wavelength > length / rope["low_freq_factor"]:
            return f / rope["factor"]
        low, high = rope["low_freq_factor"], rope["high_freq_factor"]
        smooth = (length / wavelength - low) / (high - low)
        return (1 - smooth) * f / rope["factor"] + smooth * f

    def forward(self, x: Tensor, position_ids: Tensor) -> tuple[Tensor, Tensor]:
        angle = (position_ids[..., None] * self.frequency).repeat(1, 1, 2)
        return angle.cos(), angle.sin()


def exact(theirs: nn.Module) -> nn.Module:
    """Let a model compute in float64 what its own code always rounds to float32."""
    if isinstance(theirs, MarianMTModel):
        for side in (theirs.model.encoder, theirs.model.decoder):
            sines = papers_formula(theirs.config.max_position_embeddings, d_model=theirs.config.d_model)
            side.embed_positions.weight.data = torch.cat((sines[:, 0::2], sines[:, 1::2]), dim=1)
    if not isinstance(theirs, ROTARY):
        return theirs
    if isinstance(theirs, MixtralForCausalLM):
        theirs.set_experts_implementation("eager")
    for part in list(theirs.modules()):
        for name, norm in list(part.named_children()):
            if isinstance(norm, MixtralTopKRouter):
                norm.__class__ = Router
            if type(norm).__name__ in ("LlamaRMSNorm", "MistralRMSNorm", "MixtralRMSNorm"):
                mine = nn.RMSNorm(len(norm.weight), eps=norm.variance_epsilon)
                mine.weight = norm.weight
                setattr(part, name, mine)
    theirs.model.rotary_emb = Angles(theirs.config)
    return theirs


def saved(theirs: nn.Module, folder: Path, **options) -> nn.Module:
    """Give a model random weights in float64, write it, and return it ready to compute in float64."""
    theirs = theirs.double().eval()
    fixed = {name: p.clone() for name, p in theirs.named_parameters() if "embed_positions" in name}
    randomize(theirs, seed=3)
    theirs.load_state_dict(fixed, strict=False)
    theirs.save_pretrained(folder, **options)
    return exact(theirs)


def gpt2(**changes) -> GPT2LMHeadModel:
    sizes = {"n_embd": 20, "n_head": 2, "n_layer": 2, "n_positions": MAX_LEN}
    return GPT2LMHeadModel(
        GPT2Config(vocab_size=VOCAB, **{"bos_token_id": 1, "eos_token_id": 2, **sizes, **changes})
    )


def llama(**changes) -> LlamaForCausalLM:
    return like_llama(LlamaForCausalLM, LlamaConfig, **changes)


def like_llama(model: type, config: type, **changes) -> nn.Module:
    sizes = {"hidden_size": 24, "intermediate_size": 13, "num_hidden_layers": 2, "num_attention_heads": 6}
    rope = {"rope_type": "default", "rope_theta": 5e5}
    settings = {"rms_norm_eps": 1e-5, "max_position_embeddings": MAX_LEN, "rope_parameters": rope}
    # The eager softmax is in float32 always.
    own = {**sizes, **settings, **changes}
    return model(config(vocab_size=VOCAB, attn_implementation="sdpa", **own))


def mistral(**changes) -> MistralForCausalLM:
    changes = {"num_key_value_heads": 2, "sliding_window": 3, **changes}
    return like_llama(MistralForCausalLM, MistralConfig, **changes)


def mixtral(**changes) -> MixtralForCausalLM:
    changes = {"num_key_value_heads": 2, "num_local_experts": 5, "num_experts_per_tok": 2, **changes}
    return like_llama(MixtralForCausalLM, MixtralConfig, **changes)


def bert(kind=BertForMaskedLM, **changes) -> BertForMaskedLM | BertModel:
    sizes = {"hidden_size": 20, "num_attention_heads": 2, "intermediate_size": 13, "num_hidden_layers": 2}
    return kind(BertConfig(vocab_size=VOCAB, max_position_embeddings=MAX_LEN, **{**sizes, **changes}))


def marian(**changes) -> MarianMTModel:
    both = {"layers": 2, "attention_heads": 2, "ffn_dim": 13}
    sizes = {f"{side}_{name}": size for side in ("encoder", "decoder") for name, size in both.items()}
    ids = {"pad_token_id": 0, "eos_token_id": 2, "forced_eos_token_id": None, "decoder_start_token_id": 0}
    settings = {"d_model": 20, "max_position_embeddings": MAX_LEN, "activation_function": "swish"}
    model = MarianMTModel(MarianConfig(vocab_size=VOCAB, **{**sizes, **ids, **settings, **changes}))
    model.final_logits_bias.copy_(torch.randn(model.final_logits_bias.shape))
    return model
