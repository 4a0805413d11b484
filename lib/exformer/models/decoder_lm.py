"""The decoder alone: a language model that scores the next token after every position in one pass."""

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from jaxtyping import Float, Int64
from torch import Tensor, nn

from exformer.data.windows import shift_by_one
from exformer.models.check_inputs import check_batch_type, check_ids, check_padding_at_end, check_step
from exformer.nn.cache import Cache
from exformer.nn.config import TransformerConfig, check_config
from exformer.nn.dropout import Dropout
from exformer.nn.embedding import TokenEmbedding
from exformer.nn.layers import EncoderLayer, normalization
from exformer.nn.loss import cross_entropy
from exformer.nn.masks import left_padding_mask
from exformer.nn.mixture_of_experts import add_balance_loss, record_routing
from exformer.nn.positions.absolute import added_positions


@dataclass(frozen=True)
class DecoderLMConfig(TransformerConfig):
    """What a :class:`DecoderLM` is made of; sizes and choices of the layers as in ``TransformerConfig``.

    Args:
        vocab_size: Number of tokens.
        tie_output: Use the embedding as output layer.
        scale_embedding: Multiply the embeddings by the root of ``d_model``; GPT-2 and Llama do not.
        begin_id: The token that a text begins with when there is no prompt; None: the tokenizer's ``<s>``. A
            model trained on windows of a long text has never seen ``<s>``.
        pad_id: The padding token, which the model does not learn to predict; None: every token is predicted,
            and batches must not be padded.

    Raises:
        ValueError: If no model can be built from it.

    Source:
        Radford et al. 2019, section 2.3, for pre-norm and the last normalization.

    >>> config = DecoderLMConfig(65, d_model=64, n_heads=4, n_kv_heads=2, norm="rms")
    >>> config.positions, config.pre_norm
    ('learned', True)
    >>> DecoderLMConfig(65, d_model=64, n_heads=5)
    Traceback (most recent call last):
        ...
    ValueError: d_model (64) must be divisible by n_heads (5)
    """

    vocab_size: int
    _: KW_ONLY
    pre_norm: bool = True
    activation: str = "gelu"
    positions: str = "learned"
    tie_output: bool = True
    scale_embedding: bool = True
    begin_id: int | None = None
    pad_id: int | None = 0


class DecoderLM(nn.Module):
    r"""A stack of layers with causal self-attention, from token ids to the scores of the next ones.

    .. math:: p(w_{t+1} \mid w_{\le t}) = \mathrm{softmax}(E\, h_t)

    Args:
        config: The sizes and choices.

    Source:
        Radford et al. 2018, section 3.1; Radford et al. 2019, section 2.3.

    >>> import torch
    >>> from exformer import DecoderLMConfig
    >>> model = DecoderLM(DecoderLMConfig(vocab_size=11, d_model=8, n_heads=2)).eval()
    >>> ids = torch.tensor([[3, 1, 4, 1, 5]])
    >>> model(ids).shape  # (batch, position, vocab_size)
    torch.Size([1, 5, 11])
    >>> cache = model.new_cache()
    >>> first, last = model(ids[:, :4], cache=cache), model(ids[:, 4:], cache=cache)
    >>> torch.allclose(last, model(ids)[:, 4:], atol=1e-6)
    True
    """

    kind: ClassVar[str] = "language model"

    def __init__(self, config: DecoderLMConfig) -> None:
        super().__init__()
        check_config(config, DecoderLMConfig)
        c = self.config = config
        self.embedding = TokenEmbedding(c.vocab_size, d_model=c.d_model, scale=c.scale_embedding)
        self.positions = added_positions(c.positions, c.d_model, max_len=c.max_positions)
        self.layers = nn.ModuleList(EncoderLayer(c) for _ in range(c.n_layers))
        # In a pre-norm stack nothing has normalized the last sum yet.
        self.norm = normalization(c) if c.pre_norm else nn.Identity()
        self.output = None if c.tie_output else nn.Linear(c.d_model, c.vocab_size, bias=False)
        self.dropout = Dropout(c.dropout)

    def forward(
        self,
        ids: Int64[Tensor, "batch position"],
        *,
        cache: Cache | None = None,
        padding: Int64[Tensor, " batch"] | None = None,
    ) -> Float[Tensor, "batch position vocab_size"]:
        """Score the next token after each position; padding after a text changes none of its scores.

        Args:
            ids: Texts; with a cache, what follows the positions that it holds.
            cache: Made by :meth:`new_cache`, then used for one batch of texts, in evaluation mode.
            padding: How many ids at the front of each row are padding: they are not attended to, and
                positions are counted from the first token after them. A cache remembers it, so it is given
                with the first ids only; these must hold a token of every row.

        Returns:
            Logits; at position t they are the scores of the token at t + 1.

        Raises:
            ValueError: If there are no tokens, one is unknown, a text is too long, or the cache is that of
                another batch.
        """
        return self.logits(self.states(ids, cache=cache, padding=padding))

    def logits(self, states: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch vocab_size"]:
        """Turn vectors of :meth:`states` into scores of the next token."""
        return self.embedding.logits(states) if self.output is None else self.output(states)

    def states(
        self,
        ids: Int64[Tensor, "batch position"],
        *,
        cache: Cache | None = None,
        padding: Int64[Tensor, " batch"] | None = None,
    ) -> Float[Tensor, "batch position d_model"]:
        """Return the vector of each position after the last layer; it depends on the tokens up to its own.

        Arguments as for :meth:`forward`.
        """
        start = check_step(self, ids, cache, padding=padding)
        padding = padding if cache is None or start == 0 else cache.padding
        check_ids(ids, max_len=self.config.max_positions, start=start, padding=padding)
        if cache is not None:
            cache.padding = padding
        x = self.dropout(self.positions(self.embedding(ids), start=start, padding=padding))
        mask = None if padding is None else left_padding_mask(padding, start + ids.size(1))
        layer_caches = [None] * len(self.layers) if cache is None else cache.layers
        for layer, layer_cache in zip(self.layers, layer_caches, strict=True):
            x = layer(x, mask=mask, causal=True, cache=layer_cache)
        return self.norm(x)

    def loss(
        self, ids: Int64[Tensor, "batch position"], *, label_smoothing: float = 0.0
    ) -> Float[Tensor, ""]:
        r"""Compute the loss of each token given those before it; the first one is only read.

        .. math:: L = -\frac1N \sum_{t > 1} \log p(w_t \mid w_{<t})

        Args:
            ids: Texts, the shorter ones padded at their end; padding does not count.
            label_smoothing: As in :func:`~exformer.nn.loss.cross_entropy`.

        Returns:
            The mean over the tokens, in nats; in training, a mixture of experts adds its weighted balance
            loss.

        Raises:
            ValueError: If the batch is no tensor of ids, padding comes before a token, or there is nothing to
                predict.

        >>> import torch
        >>> from exformer import DecoderLMConfig, pad
        >>> model = DecoderLM(DecoderLMConfig(vocab_size=11, d_model=8, n_heads=2)).eval()
        >>> padded = pad([[3, 1, 4], [2, 7, 1, 8, 2, 8]], pad_id=0)
        >>> parts = [model.loss(padded[:1, :3]), model.loss(padded[1:])]  # of 2 and of 5 tokens
        >>> torch.allclose(model.loss(padded), (2 * parts[0] + 5 * parts[1]) / 7)
        True
        """
        check_batch_type(ids, Tensor, model=self, made_by="TextWindows cuts a text, pad joins several")
        check_padding_at_end(ids, pad_id=self.config.pad_id)
        (read, targets), pad_id = shift_by_one(ids), self.config.pad_id
        with record_routing() as routing:
            logits = self(read)
        loss = cross_entropy(logits, targets, pad_id=pad_id, label_smoothing=label_smoothing)
        counts = None if pad_id is None else read != pad_id
        return add_balance_loss(loss, self, logits=routing, counts=[counts] * len(routing))

    def new_cache(self) -> Cache:
        """Return an empty key-value cache for this model."""
        return Cache(len(self.layers), window=self.config.window)
