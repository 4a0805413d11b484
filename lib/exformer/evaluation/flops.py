"""The cost of a model by formula: parameters, multiply-adds, and the longest chain of dependent steps."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one sequence. The costs of consecutive parts add up.

    Only matrix products count: softmax, normalization and activations grow with the width, not its square.
    PyTorch's ``FlopCounterMode`` agrees, but takes a multiply-add for two operations. It sees neither the
    products inside PyTorch's LSTM nor those of the fused attention on CPUs; it sees those of the plain
    attention, under ``sdpa_kernel(SDPBackend.MATH)``.

    Args:
        parameters: Number of parameters.
        multiply_adds: Multiplications of the matrix products in a forward pass.
        steps: Length of the longest chain of matrix products in which each needs the result of the one
            before: with enough processors, the time grows with this number alone.

    >>> Cost(parameters=5, multiply_adds=7, steps=1) + 2 * Cost(parameters=1, multiply_adds=3, steps=1)
    Cost(parameters=7, multiply_adds=13, steps=3)
    """

    parameters: int = 0
    multiply_adds: int = 0
    steps: int = 0

    def __add__(self, other: "Cost") -> "Cost":
        """Return the cost of two consecutive parts."""
        return Cost(
            self.parameters + other.parameters,
            self.multiply_adds + other.multiply_adds,
            self.steps + other.steps,
        )

    def __rmul__(self, times: int) -> "Cost":
        """Return the cost of several equal, consecutive parts."""
        return Cost(times * self.parameters, times * self.multiply_adds, times * self.steps)


def attention_cost(d_model: int, *, n_queries: int, n_keys: int, bias: bool = True) -> Cost:
    r"""Count multi-head attention; the number of heads changes nothing.

    .. math:: \text{multiply-adds} = 2 n_q d^2 + 2 n_k d^2 + 2 n_q n_k d

    The terms are the projections of queries and output, the projections of keys and values, and the scores
    with the weighted means. The four steps are projections, scores, weighted means and output.

    Source:
        Vaswani et al. 2017, table 1 and section 3.2.2.

    >>> attention_cost(2, n_queries=3, n_keys=1)
    Cost(parameters=24, multiply_adds=44, steps=4)
    """
    parameters = 4 * d_model**2 + 4 * d_model * bias
    projections, pairs = 2 * (n_queries + n_keys) * d_model**2, 2 * n_queries * n_keys * d_model
    return Cost(parameters, projections + pairs, 4)


def feed_forward_cost(d_model: int, *, d_ff: int, n: int) -> Cost:
    r"""Count the feed-forward network at n positions: :math:`2 n\, d\, d_{ff}` multiply-adds."""
    return Cost(2 * d_model * d_ff + d_ff + d_model, 2 * n * d_model * d_ff, 2)


def layer_norm_cost(d_model: int) -> Cost:
    """Count a layer normalization: a gain and a bias, no matrix product."""
    return Cost(parameters=2 * d_model)


def encoder_layer_cost(d_model: int, *, d_ff: int, n: int) -> Cost:
    """Count an encoder layer at n positions: attention, feed-forward network, two normalizations."""
    attention = attention_cost(d_model, n_queries=n, n_keys=n)
    return attention + feed_forward_cost(d_model, d_ff=d_ff, n=n) + 2 * layer_norm_cost(d_model)
