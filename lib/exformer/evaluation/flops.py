"""What a model costs, by formula: parameters, multiply-adds, and steps that must wait for each other."""

from dataclasses import dataclass

from exformer.models.encoder_decoder import EncoderDecoderConfig

_GATES = {"rnn": 1, "gru": 3, "lstm": 4}


@dataclass(frozen=True, slots=True)
class Cost:
    """Hold what one sequence costs. Costs of parts that follow each other add up.

    Counted are the matrix products. PyTorch's ``FlopCounterMode`` finds as many where it sees them, and takes
    a multiply-add for two operations; it sees none inside PyTorch's LSTM, nor inside the fused attention of
    CPUs, but those of the plain one, under ``sdpa_kernel(SDPBackend.MATH)``. Softmax, normalization and
    activations are left out: they grow with the width, not its square.

    Args:
        parameters: Learned numbers.
        multiply_adds: Multiplications of matrix products, forward pass.
        steps: Matrix products in the longest chain in which each waits for the one before: what is left of
            the time if there are processors enough for all else.

    >>> Cost(parameters=5, multiply_adds=7, steps=1) + 2 * Cost(parameters=1, multiply_adds=3, steps=1)
    Cost(parameters=7, multiply_adds=13, steps=3)
    """

    parameters: int = 0
    multiply_adds: int = 0
    steps: int = 0

    def __add__(self, other: "Cost") -> "Cost":
        """Return the cost of one after the other."""
        return Cost(
            self.parameters + other.parameters,
            self.multiply_adds + other.multiply_adds,
            self.steps + other.steps,
        )

    def __rmul__(self, times: int) -> "Cost":
        """Return the cost of several alike, one after the other."""
        return Cost(times * self.parameters, times * self.multiply_adds, times * self.steps)


def attention_cost(d_model: int, *, n_queries: int, n_keys: int, bias: bool = True) -> Cost:
    r"""Count multi-head attention; the number of heads changes nothing.

    .. math:: \text{multiply-adds} = 2 n_q d^2 + 2 n_k d^2 + 2 n_q n_k d

    Queries and output, keys and values, scores and means.

    Args:
        d_model: Width of the vectors.
        n_queries: Vectors that ask.
        n_keys: Vectors that are asked.
        bias: Whether the projections add a bias.

    Returns:
        The cost; the four steps are projections, scores, means and output.

    Source:
        Vaswani et al. 2017, table 1 and section 3.2.2.
    """
    parameters = 4 * d_model**2 + 4 * d_model * bias
    projections, pairs = 2 * (n_queries + n_keys) * d_model**2, 2 * n_queries * n_keys * d_model
    return Cost(parameters, projections + pairs, 4)


def feed_forward_cost(d_model: int, *, d_ff: int, n: int) -> Cost:
    r"""Count the position-wise network: :math:`2 n\, d\, d_{ff}` multiply-adds.

    Args:
        d_model: Width of the vectors.
        d_ff: Width of the hidden layer.
        n: Positions.

    Returns:
        The cost.
    """
    return Cost(2 * d_model * d_ff + d_ff + d_model, 2 * n * d_model * d_ff, 2)


def layer_norm_cost(d_model: int) -> Cost:
    """Count a layer normalization: a gain and a bias, no matrix product.

    Args:
        d_model: Width of the vectors.

    Returns:
        The cost.
    """
    return Cost(parameters=2 * d_model)


def encoder_layer_cost(d_model: int, *, d_ff: int, n: int) -> Cost:
    """Count an encoder layer: attention, feed-forward network, two normalizations.

    Args:
        d_model: Width of the vectors.
        d_ff: Width of the hidden layer.
        n: Positions.

    Returns:
        The cost.
    """
    attention = attention_cost(d_model, n_queries=n, n_keys=n)
    return attention + feed_forward_cost(d_model, d_ff=d_ff, n=n) + 2 * layer_norm_cost(d_model)


def decoder_layer_cost(d_model: int, *, d_ff: int, n_tgt: int, n_src: int) -> Cost:
    """Count a decoder layer: an encoder layer, attention to the memory, a third normalization.

    Args:
        d_model: Width of the vectors.
        d_ff: Width of the hidden layer.
        n_tgt: Target positions.
        n_src: Source positions.

    Returns:
        The cost.
    """
    cross = attention_cost(d_model, n_queries=n_tgt, n_keys=n_src)
    return encoder_layer_cost(d_model, d_ff=d_ff, n=n_tgt) + cross + layer_norm_cost(d_model)


def encoder_decoder_cost(config: EncoderDecoderConfig, *, n_src: int, n_tgt: int) -> Cost:
    """Count a whole transformer for one sentence pair, output layer included.

    Args:
        config: The sizes and choices.
        n_src: Source positions.
        n_tgt: Target positions.

    Returns:
        The cost; the table of the target is the output layer as well, if they are tied, and that of the
        source, if they share one.
    """
    c, d = config, config.d_model
    tables = c.src_vocab_size * (not c.share_embeddings) + c.tgt_vocab_size * (1 if c.tie_output else 2)
    positions = 2 * c.max_len if c.positions == "learned" else 0
    final_norms = 2 * int(c.pre_norm)
    gains = 3 * c.n_layers * 2 * (d // c.n_heads) * c.qk_norm  # of queries and keys, one for all heads
    # The decoder's first self-attention needs no memory: it is done while the encoder works.
    return (
        c.n_layers * encoder_layer_cost(d, d_ff=c.d_ff, n=n_src)
        + c.n_layers * decoder_layer_cost(d, d_ff=c.d_ff, n_tgt=n_tgt, n_src=n_src)
        + final_norms * layer_norm_cost(d)
        + Cost((tables + positions) * d + gains, n_tgt * c.tgt_vocab_size * d, 1)
        + Cost(steps=-attention_cost(d, n_queries=n_tgt, n_keys=n_tgt).steps)
    )


def recurrent_layer_cost(d_model: int, *, cell: str, n: int) -> Cost:
    r"""Count a recurrent layer: :math:`2 n g d^2` multiply-adds, and a chain as long as the sequence.

    Args:
        d_model: Width of inputs and states.
        cell: ``"rnn"``, ``"gru"`` or ``"lstm"``, with g = 1, 3 or 4 matrices for the input and for the state.
        n: Positions.

    Returns:
        The cost; each matrix has a bias, as PyTorch has it.

    Raises:
        ValueError: If the cell is unknown.

    Source:
        Vaswani et al. 2017, table 1.
    """
    if cell not in _GATES:
        raise ValueError(f"cell must be one of {', '.join(_GATES)}, got {cell!r}")
    gates = _GATES[cell]
    return Cost(gates * (2 * d_model**2 + 2 * d_model), 2 * n * gates * d_model**2, n)
