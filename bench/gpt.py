"""Language models of one size: our DecoderLM, Hugging Face's GPT-2 and PyTorch's nn.TransformerEncoder.

All are pre-norm with gelu, learned positions and a tied output, as nanoGPT has them. PyTorch's further
dropouts are switched off, and all peers are told that the mask is causal, so that they take their fast path.

GPT-2 runs twice: as Hugging Face configures it, with the approximation of gelu by tanh that GPT-2 was trained
with, written in several operations; and given PyTorch's gelu, one operation, which ours has too.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.setting import Contender, silence_further_dropouts
from exformer.models.decoder_lm import DecoderLM, DecoderLMConfig
from exformer.nn.loss import cross_entropy


@dataclass(frozen=True, kw_only=True)
class GPTSetting:
    """Sizes and rates.

    Args:
        d_model: Width of the vectors.
        n_heads: Attention heads a layer.
        n_layers: Number of layers.
        context: Symbols a text has.
        batch_size: Texts in a batch.
        vocab_size: Number of symbols.
        dropout: Of the embeddings and of each sublayer's output.
        precision: ``"float32"``, or ``"bfloat16"`` for autocast.
        n_batches: How many batches take turns.
        budget_s: For how long the steps are timed, all contenders together.
    """

    d_model: int
    n_heads: int
    n_layers: int
    context: int
    batch_size: int
    vocab_size: int = 65
    dropout: float = 0.0
    precision: str = "float32"
    n_batches: int = 4
    budget_s: float = 12.0

    def __str__(self) -> str:
        """Return the sizes in one line."""
        return (
            f"d_model {self.d_model}, {self.n_layers} layers, {self.n_heads} heads, context {self.context}, "
            f"batch {self.batch_size}, vocabulary {self.vocab_size}, dropout {self.dropout:g}, "
            f"{self.precision}"
        )

    def config(self) -> DecoderLMConfig:
        """Return the configuration of our model."""
        sizes = {name: getattr(self, name) for name in ("d_model", "n_heads", "n_layers", "dropout")}
        return DecoderLMConfig(self.vocab_size, d_ff=4 * self.d_model, max_len=self.context, **sizes)


@dataclass(frozen=True)
class TextBatch:
    """Texts, and what comes next at each position: both (text, time)."""

    ids: Tensor
    targets: Tensor


def make_texts(setting: GPTSetting, *, seed: int = 0) -> list[TextBatch]:
    """Make batches of random tokens."""
    generator = torch.Generator().manual_seed(seed)
    shape = (setting.n_batches, setting.batch_size, setting.context + 1)
    ids = torch.randint(1, setting.vocab_size, shape, generator=generator)  # GPT-2 warns of a 0: padding?
    return [TextBatch(rows[:, :-1].contiguous(), rows[:, 1:].contiguous()) for rows in ids]


def exformer(setting: GPTSetting) -> Contender:
    """Build our model."""
    model = DecoderLM(setting.config())
    return Contender(model, lambda batch: cross_entropy(model(batch.ids), batch.targets), setting.precision)


def gpt2(config: DecoderLMConfig, *, activation: str = "gelu") -> nn.Module:
    """Build Hugging Face's GPT-2 of the size of a model of ours, with our GELU or another activation."""
    from transformers import GPT2Config, GPT2LMHeadModel  # the import takes seconds, some processes need none

    c = config
    sizes = {"n_embd": c.d_model, "n_layer": c.n_layers, "n_head": c.n_heads, "n_inner": c.d_ff}
    ids = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": 0}
    dropouts = {"embd_pdrop": c.dropout, "resid_pdrop": c.dropout, "attn_pdrop": 0.0}
    theirs = GPT2Config(
        vocab_size=c.vocab_size,
        n_positions=c.max_len,
        activation_function=activation,
        **sizes,
        **ids,
        **dropouts,
    )
    return GPT2LMHeadModel(theirs)


def gpt2_contender(setting: GPTSetting, *, activation: str = "gelu", tolerance: float = 0.0) -> Contender:
    """Build Hugging Face's, with our GELU or another activation."""
    model, root = gpt2(setting.config(), activation=activation), math.sqrt(setting.d_model)

    def loss(batch: TextBatch) -> Tensor:
        logits = model(batch.ids, use_cache=False).logits
        return F.cross_entropy(logits.flatten(end_dim=1), batch.targets.flatten())

    final = {f"transformer.ln_f.{name}": 1 / root for name in ("weight", "bias")}
    factors = {"transformer.wte.weight": root, **final}
    return Contender(model, loss, setting.precision, factors, tolerance)


def gpt2_as_configured(setting: GPTSetting) -> Contender:
    """Build Hugging Face's, with the GELU of its configuration."""
    # The approximation moves loss and gradient by less than 1e-4 of them at the sizes of the race.
    return gpt2_contender(setting, activation="gelu_new", tolerance=3e-4)


class TorchGPT(nn.Module):
    """What users write around nn.TransformerEncoder: embeddings, positions, mask, tied output."""

    def __init__(self, setting: GPTSetting) -> None:
        super().__init__()
        s = setting
        self.embedding = nn.Embedding(s.vocab_size, s.d_model)
        self.positions = nn.Embedding(s.context, s.d_model)
        self.dropout = nn.Dropout(s.dropout)
        layer = nn.TransformerEncoderLayer(
            s.d_model,
            nhead=s.n_heads,
            dim_feedforward=4 * s.d_model,
            dropout=s.dropout,
            activation="gelu",
            batch_first=True,
            norm_first=True,
        )
        self.encoder = nn.TransformerEncoder(
            layer, s.n_layers, norm=nn.LayerNorm(s.d_model), enable_nested_tensor=False
        )
        silence_further_dropouts(self.encoder)

    def forward(self, ids: Tensor) -> Tensor:
        """Return the logits of the token after each position."""
        time = ids.size(1)
        x = self.embedding(ids) * math.sqrt(self.embedding.embedding_dim) + self.positions.weight[:time]
        hidden = torch.ones(time, time, dtype=torch.bool).triu(1)
        x = self.encoder(self.dropout(x), mask=hidden, is_causal=True)
        return F.linear(x, self.embedding.weight)


def torch_encoder(setting: GPTSetting) -> Contender:
    """Build PyTorch's model."""
    model = TorchGPT(setting)

    def loss(batch: TextBatch) -> Tensor:
        return F.cross_entropy(model(batch.ids).flatten(end_dim=1), batch.targets.flatten())

    return Contender(model, loss, setting.precision)


#: Who runs, ours first.
CONTENDERS: dict[str, Callable[[GPTSetting], Contender]] = {
    "exformer": exformer,
    "GPT-2": gpt2_as_configured,
    "GPT-2, PyTorch's gelu": gpt2_contender,
    "torch nn.TransformerEncoder": torch_encoder,
}

#: The sizes by the names that the command line takes: nanoGPT's models of Shakespeare's characters, one for a
#: laptop and one for a GPU, which takes 64 texts at a time.
SETTINGS = {
    "gpt-d128": GPTSetting(d_model=128, n_heads=4, n_layers=4, context=64, batch_size=12),
    "gpt-d384": GPTSetting(
        d_model=384, n_heads=6, n_layers=6, context=256, batch_size=2, dropout=0.2, budget_s=30.0
    ),
}

#: In a moment, to see whether everything works.
QUICK = GPTSetting(d_model=24, n_heads=3, n_layers=2, context=8, batch_size=2, vocab_size=17, budget_s=0.1)
