"""The configuration of transformer models: sizes and choices of their layers, and their checks."""

from dataclasses import dataclass, fields, replace
from typing import Any

from exformer.check_settings import check_choice, check_integer
from exformer.nn.feedforward import ACTIVATIONS, default_d_ff
from exformer.nn.normalization import NORMS
from exformer.nn.positions.rotary import RopeScaling

#: How a model can know the order of its tokens, by name.
POSITIONS = ("sinusoidal", "sinusoidal_halves", "learned", "rotary", "alibi", "none")


class DerivedSize(int):
    """A size that follows from other settings; a copy with other settings derives it anew."""


@dataclass(frozen=True, kw_only=True)
class TransformerConfig:
    """Sizes and choices of a stack of transformer layers; the models' configurations extend it.

    Args:
        d_model: Width of the vectors.
        n_heads: Attention heads of a layer.
        n_kv_heads: Heads of keys and values, each shared by ``n_heads / n_kv_heads`` heads of queries
            (grouped-query attention; with 1, multi-query attention). None: as many as ``n_heads``.
        d_head: Width of a head. None: ``d_model / n_heads``.
        d_ff: Width of the feed-forward networks' hidden layer. None: ``4 · d_model``, and for SwiGLU
            ``8/3 · d_model``, rounded up to a multiple of 8.
        n_layers: Number of layers.
        max_len: Longest sequence, in tokens. Only a causal model with a window, and with rotary positions,
            ALiBi or none, reads longer ones.
        dropout: Fraction set to zero in training, of the embeddings and of each sublayer's output.
        attention_dropout: Fraction of the attention weights set to zero in training.
        pre_norm: Normalize before each sublayer, and once at the end of the stack, not after each sum.
        norm: ``"layer"`` (layer normalization) or ``"rms"`` (root mean square normalization).
        norm_eps: ε of all normalizations. None: 1e-5 of a layer normalization, 1e-6 of the other.
        activation: Of the feed-forward networks: one of
            :data:`~exformer.nn.feedforward.ACTIVATIONS`, or ``"swiglu"``.
        positions: ``"sinusoidal"``, ``"sinusoidal_halves"`` (all sines before the cosines) or ``"learned"``
            (added to the embeddings), ``"rotary"`` or ``"alibi"`` (acting inside self-attention), or
            ``"none"``.
        rope_base: Base of the rotary frequencies; Llama 3 has 500,000.
        rope_scaling: How the rotary frequencies are slowed down for longer texts; None: not at all.
        window: How many positions each one attends to, itself and those before it (sliding-window attention,
            of causal models only); None: all.
        n_experts: Number of experts in a mixture of experts, in place of each feed-forward network; None:
            there is one network.
        experts_per_token: How many experts are chosen for each position.
        balance_weight: Weight of the balance loss, which a model adds to its loss in training.
        bias: Whether linear maps and layer normalizations add a bias.
        qkv_bias: Whether the projections to queries, keys and values add a bias. None: as ``bias`` says.
        o_bias: Whether the attention's output projection adds a bias. None: as ``bias`` says.
        qk_norm: Normalize the queries and keys of every head.
        zero_init: Start with the last matrix of every sublayer at zero, so that each layer begins as the
            identity (pre-norm).

    Raises:
        ValueError: If no model can be built from it; the message says what to change.

    Source:
        Vaswani et al. 2017, section 3; Ainslie et al. 2023 for grouped queries; Shazeer 2020 for SwiGLU;
        Henry et al. 2020 for normalized queries and keys; Zhang, Dauphin and Ma 2019 for the zeros.

    >>> from exformer import EncoderLayer
    >>> config = TransformerConfig(d_model=64, n_heads=4, d_ff=256, norm="rms", positions="rotary")
    >>> layer = EncoderLayer(config)
    >>> config.d_head, config.pre_norm
    (16, False)
    >>> TransformerConfig(d_model=64, n_heads=5)
    Traceback (most recent call last):
        ...
    ValueError: d_model (64) must be divisible by n_heads (5)
    """

    d_model: int = 128
    n_heads: int = 4
    n_kv_heads: int | None = None
    d_head: int | None = None
    d_ff: int | None = None
    n_layers: int = 2
    max_len: int = 128
    dropout: float = 0.1
    attention_dropout: float = 0.0
    pre_norm: bool = False
    norm: str = "layer"
    norm_eps: float | None = None
    activation: str = "relu"
    positions: str = "none"
    rope_base: float = 10_000.0
    rope_scaling: RopeScaling | None = None
    window: int | None = None
    n_experts: int | None = None
    experts_per_token: int = 2
    balance_weight: float = 0.01
    bias: bool = True
    qkv_bias: bool | None = None
    o_bias: bool | None = None
    qk_norm: bool = False
    zero_init: bool = False

    def __post_init__(self) -> None:
        """Check the settings, and derive the sizes that were not given."""
        derived = [name for name in ("d_head", "d_ff") if isinstance(getattr(self, name), DerivedSize | None)]
        check_sizes(self)
        check_choice("positions", self.positions, POSITIONS)
        check_choice("activation", self.activation, (*ACTIVATIONS, "swiglu"))
        check_choice("norm", self.norm, tuple(NORMS))
        if self.n_experts is not None:
            check_integer("experts_per_token", self.experts_per_token, least=1, most=self.n_experts)
        if not self.balance_weight >= 0:
            raise ValueError(f"balance_weight must be at least 0, got {self.balance_weight}")
        if not isinstance(self.rope_scaling, RopeScaling | None):
            raise ValueError(f"rope_scaling must be a RopeScaling or None, got {self.rope_scaling!r}")
        if not self.rope_base > 0:
            raise ValueError(f"rope_base must be above 0, got {self.rope_base}")
        if self.norm_eps is not None and not self.norm_eps >= 0:
            raise ValueError(f"norm_eps must be at least 0, got {self.norm_eps}")
        if "d_head" in derived and self.d_model % self.n_heads:
            raise ValueError(f"d_model ({self.d_model}) must be divisible by n_heads ({self.n_heads})")
        if self.n_kv_heads is not None and self.n_heads % self.n_kv_heads:
            raise ValueError(f"n_heads ({self.n_heads}) must be divisible by n_kv_heads ({self.n_kv_heads})")
        sizes = {
            "d_head": self.d_model // self.n_heads,
            "d_ff": default_d_ff(self.d_model, activation=self.activation),
        }
        for name in derived:
            object.__setattr__(self, name, DerivedSize(sizes[name]))
        if self.positions.startswith("sinusoidal") and self.d_model % 2:
            raise ValueError(
                f"d_model ({self.d_model}) must be even for sinusoidal positions: "
                "each frequency needs a sine and a cosine"
            )
        if self.positions == "rotary" and self.d_head is not None and self.d_head % 2:
            raise ValueError(f"rotary positions rotate columns in pairs: d_head ({self.d_head}) must be even")

    @property
    def max_positions(self) -> int | None:
        """Largest number of positions that a causal model reads, or None if there is no largest.

        Relative positions see offsets only, and a window keeps these small, however long the text is.
        """
        endless = self.window is not None and self.positions in ("rotary", "alibi", "none")
        return None if endless else self.max_len


def derive_sizes(config: TransformerConfig) -> TransformerConfig:
    """Let ``d_head`` and ``d_ff`` follow from the other settings again, where they are what these give.

    >>> wide = derive_sizes(TransformerConfig(d_model=8, d_head=2, d_ff=32))
    >>> replace(wide, d_model=64).d_ff
    256
    """
    sizes: dict[str, Any] = {}
    if config.d_model == config.n_heads * (config.d_head or 0):
        sizes["d_head"] = None
    if config.d_ff == default_d_ff(config.d_model, activation=config.activation):
        sizes["d_ff"] = None
    return replace(config, **sizes)


def check_sizes(config: Any) -> None:
    """Check the sizes, dropout rates and token ids of a model's configuration.

    Integers of NumPy become Python's, which the file of a model can hold.

    Args:
        config: A dataclass with the library's names for its fields: sizes (``d_model``, ``n_heads``,
            ``n_kv_heads``, ``d_head``, ``d_ff``, ``n_layers``, ``max_len``, ``window``, ``n_experts``,
            ``…vocab_size``), ``dropout`` and ``attention_dropout``, ``…_id`` of a token.

    Raises:
        ValueError: If a size is not an integer of 1 or more, a dropout rate outside [0, 1), or an id not in
            the vocabulary.
    """
    values = {field.name: getattr(config, field.name) for field in fields(config)}
    sizes = [
        "d_model",
        "n_heads",
        "n_kv_heads",
        "d_head",
        "d_ff",
        "n_layers",
        "max_len",
        "window",
        "n_experts",
    ]
    vocab_sizes = [value for name, value in values.items() if name.endswith("vocab_size")]
    for name, value in values.items():
        if name.endswith("dropout") and not 0.0 <= value < 1.0:
            raise ValueError(f"{name} must lie in [0, 1), got {value}")
        if value is None:
            continue
        if name in sizes or name.endswith("vocab_size"):
            object.__setattr__(config, name, check_integer(name, value, least=1))
        if name.endswith("_id"):
            object.__setattr__(config, name, check_integer(name, value, least=0, most=min(vocab_sizes) - 1))


def check_no_window(config: TransformerConfig) -> None:
    """Check that a model whose layers are not all causal has no window."""
    if config.window is not None:
        raise ValueError(
            f"a window ({config.window}) is for causal attention: build a DecoderLM with it, or leave it out "
            f"of the {type(config).__name__}"
        )


def check_config(config: object, kind: type) -> None:
    """Check that a model or a layer is given the configuration that it is made from.

    Raises:
        ValueError: If it is something else, as a dict.
    """
    if not isinstance(config, kind):
        unpacked = f": {kind.__name__}(**settings) makes one" if isinstance(config, dict) else ""
        raise ValueError(f"config must be a {kind.__name__}, got {type(config).__name__}{unpacked}")
