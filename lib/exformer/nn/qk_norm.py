"""Normalized queries and keys: however large the projections grow, scores stay within bounds."""

from jaxtyping import Float
from torch import Tensor, nn

from exformer.nn.multi_head import MultiHeadAttention
from exformer.nn.normalization import RMSNorm


class QKNorm(nn.Module):
    r"""Bring each query and each key of every head to mean square 1, before positions act on them.

    .. math:: \hat q = \mathrm{RMSNorm}_q(q), \qquad \hat k = \mathrm{RMSNorm}_k(k)

    With gains of 1 a normalized vector has the length :math:`\sqrt{d_{head}}`, so that no score, which is
    divided by that root, is above it. One gain for the queries and one for the keys are shared by all heads.

    Args:
        d_head: Width of a head.
        positions: What acts on the normalized queries and keys next, see
            :class:`~exformer.nn.multi_head.MultiHeadAttention`; nothing if None.

    Source:
        Henry et al. 2020, equation 4, with a mean square of 1 and learned gains as in Yang et al. 2025,
        section 2.
    """

    def __init__(self, d_head: int, *, positions: nn.Module | None = None) -> None:
        super().__init__()
        self.norm_q = RMSNorm(d_head)
        self.norm_k = RMSNorm(d_head)
        self.positions = positions

    def forward(
        self,
        q: Float[Tensor, "batch heads query d_head"],
        k: Float[Tensor, "batch heads key d_head"],
    ) -> tuple[
        Float[Tensor, "batch heads query d_head"],
        Float[Tensor, "batch heads key d_head"],
        Float[Tensor, "heads query key"] | None,
    ]:
        """Normalize queries and keys, then hand them to the positions.

        Args:
            q: Queries.
            k: Keys.

        Returns:
            Queries, keys, and what is added to their scores, if anything is.

        Raises:
            ValueError: If the vectors have another width, or the positions refuse them.
        """
        q, k = self.norm_q(q), self.norm_k(k)
        return (q, k, None) if self.positions is None else self.positions(q, k)


def normalize_heads(stack: nn.Module) -> None:
    """Give every attention of a new stack normalized queries and keys; its positions come after them.

    Args:
        stack: A layer, or layers; nothing in it may share its positions with what should stay as it is.

    Raises:
        ValueError: If an attention has them already.
    """
    for part in stack.modules():
        if isinstance(part, MultiHeadAttention):
            if isinstance(part.positions, QKNorm):
                raise ValueError("queries and keys are normalized already: build the layers anew")
            part.positions = QKNorm(part.w_q.out_features // part.n_heads, positions=part.positions)
