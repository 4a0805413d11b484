"""The decoder alone: a language model that reads a text once and scores the next symbol after each."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from exformer.models.config import (
    added_positions,
    apply_switches,
    check_config,
    check_ids,
    relative_positions,
)
from exformer.nn.dropout import Dropout
from exformer.nn.embedding import TokenEmbedding
from exformer.nn.layers import EncoderLayer
from exformer.nn.masks import causal_mask
from exformer.nn.normalization import LayerNorm


@dataclass(frozen=True)
class DecoderLMConfig:
    """What a :class:`DecoderLM` is made of.

    Args:
        vocab_size: Number of symbols.
        d_model: Width of the vectors.
        n_heads: Attention heads a layer.
        d_ff: Width of the feed-forward networks' hidden layer.
        n_layers: Number of layers.
        max_len: Longest text, in symbols; relative positions and none have no limit of their own.
        dropout: Share set to zero in training, of the embeddings and of each sublayer's output.
        pre_norm: Normalize before each sublayer, and once at the end.
        activation: Of the feed-forward networks.
        positions: ``"sinusoidal"``, ``"learned"``, ``"rotary"``, ``"alibi"`` or ``"none"``.
        tie_output: Use the embedding as output layer.
        qk_norm, zero_init: See :func:`~exformer.models.config.apply_switches`.

    Raises:
        ValueError: If a size is below 1, dropout outside [0, 1), or the positions are unknown.

    Source:
        Radford et al. 2019, section 2.3, for pre-norm and the last normalization.
    """

    vocab_size: int
    d_model: int = 128
    n_heads: int = 4
    d_ff: int = 512
    n_layers: int = 2
    max_len: int = 128
    dropout: float = 0.1
    pre_norm: bool = True
    activation: str = "gelu"
    positions: str = "learned"
    tie_output: bool = True
    qk_norm: bool = False
    zero_init: bool = False

    def __post_init__(self) -> None:
        """Refuse what no model can be built from."""
        check_config(self)


class DecoderLM(nn.Module):
    r"""A stack of layers with causal self-attention, from symbols to the scores of the next ones.

    .. math:: p(w_{t+1} \mid w_{\le t}) = \mathrm{softmax}(E\, h_t)

    Args:
        config: The sizes and choices.

    Source:
        Radford et al. 2018, section 3.1; Radford et al. 2019, section 2.3.
    """

    def __init__(self, config: DecoderLMConfig) -> None:
        super().__init__()
        c = self.config = config
        layer = {name: getattr(c, name) for name in ("n_heads", "d_ff", "dropout", "pre_norm", "activation")}
        self.embedding = TokenEmbedding(c.vocab_size, d_model=c.d_model)
        self.positions = added_positions(c)
        self.layers = nn.ModuleList(
            EncoderLayer(c.d_model, **layer, positions=relative_positions(c)) for _ in range(c.n_layers)
        )
        apply_switches(c, self.layers)
        # In a pre-norm stack nothing has normalized the last sum yet.
        self.norm = LayerNorm(c.d_model) if c.pre_norm else nn.Identity()
        self.output = None if c.tie_output else nn.Linear(c.d_model, c.vocab_size, bias=False)
        self.dropout = Dropout(c.dropout)

    def forward(self, ids: Int64[Tensor, "batch time"]) -> Float[Tensor, "batch time vocab_size"]:
        """Score the symbol after each position, all at once; padding behind a text changes no score of it.

        Args:
            ids: Texts.

        Returns:
            Logits; at position t they speak of symbol t + 1.

        Raises:
            ValueError: If there are no symbols, one is unknown, or a text is too long.
        """
        h = self.states(ids)
        return self.embedding.logits(h) if self.output is None else self.output(h)

    def states(self, ids: Int64[Tensor, "batch time"]) -> Float[Tensor, "batch time d_model"]:
        """Give the vector of each position after the last layer; it knows the symbols up to its own.

        Args:
            ids: Texts.

        Returns:
            One vector a position.
        """
        x, mask = self._start(ids)
        for layer in self.layers:
            x = layer(x, mask=mask)
        return self.norm(x)

    @torch.no_grad()
    def attention_weights(
        self, ids: Int64[Tensor, "batch time"]
    ) -> tuple[Float[Tensor, "batch heads query key"], ...]:
        """Give the weights of every layer and head.

        Args:
            ids: Texts.

        Returns:
            One tensor a layer.

        Raises:
            ValueError: If the model is in training mode, in which dropout would change what is seen.
        """
        if self.training:
            raise ValueError("attention weights are read in evaluation mode: call model.eval() first")
        x, mask = self._start(ids)
        found = []
        for layer in self.layers:
            found.append(layer.attention_weights(x, mask=mask))
            x = layer(x, mask=mask)
        return tuple(found)

    def _start(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        check_ids(ids, max_len=self.config.max_len)
        x = self.positions(self.embedding(ids))
        return self.dropout(x), causal_mask(ids.size(1), device=ids.device)
