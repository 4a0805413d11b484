"""Muon: an optimizer for matrices whose updates are orthogonal."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

_A, _B, _C = 3.4445, -4.7750, 2.0315  # five steps bring what is above 0.002 between 0.68 and 1.21
_TINY = 1e-7


def orthogonalize(
    matrices: Float[Tensor, "batch rows columns"], *, steps: int = 5, dtype: torch.dtype = torch.bfloat16
) -> Float[Tensor, "batch rows columns"]:
    r"""Orthogonalize matrices approximately: move their singular values near 1, keep the singular vectors.

    .. math::
        X_0 = \frac{G}{\lVert G \rVert}, \qquad
        X_{n+1} = a X_n + b\, (X_n X_n^\top) X_n + c\, (X_n X_n^\top)^2 X_n

    Each step of this Newton–Schulz iteration maps every singular value s to :math:`a s + b s^3 + c s^5`,
    which lifts the small ones. No decomposition is needed, and all matrices of one shape are handled at once.

    Args:
        matrices: G, each orthogonalized by itself.
        steps: Number of iterations.
        dtype: Type of the computation; half precision is enough for a direction.

    Returns:
        Matrices with the same singular vectors, in ``dtype``; a matrix of zeros stays zero.

    Source:
        Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural networks", with its a, b and c.

    >>> orthogonalize(torch.diag(torch.tensor([4.0, 1.0]))[None]).diagonal(dim1=1, dim2=2)
    tensor([[0.7305, 0.7305]], dtype=torch.bfloat16)
    """
    tall = matrices.size(1) > matrices.size(2)
    x = (matrices.mT if tall else matrices).to(dtype)  # the smaller of the two products is X Xᵀ
    x = x / x.flatten(start_dim=1).norm(dim=1).clamp(min=_TINY)[:, None, None]
    for _ in range(steps):
        square = x @ x.mT  # (batch, rows, rows)
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=_B, alpha=_C), x, beta=_A)
    return x.mT if tall else x


class Muon(torch.optim.Optimizer):
    r"""Update matrices by the orthogonal matrix nearest to the running mean of their gradients.

    .. math::
        M \leftarrow \mu M + (1 - \mu) G, \qquad
        W \leftarrow (1 - \eta \lambda) W
        - \eta \sqrt{\max(1, \tfrac{rows}{columns})}\; \mathrm{orthogonalize}((1 - \mu) G + \mu M)

    ``torch.optim.Muon`` makes the same updates, one matrix after the other. Here all matrices of one shape
    are updated together, which takes a third of its time where there are many small ones.

    Args:
        parameters: Matrices.
        lr: :math:`\eta`; a schedule may change it at each step.
        momentum: :math:`\mu`, of the running mean of gradients.
        weight_decay: :math:`\lambda`.

    Raises:
        ValueError: If a parameter is not a matrix, or a number is out of its range.

    Source:
        Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural networks".

    >>> import torch
    >>> layer = torch.nn.Linear(3, 2, bias=False)
    >>> optimizer = Muon(layer.parameters(), lr=0.02, momentum=0.95, weight_decay=0.0)
    >>> layer(torch.ones(1, 3)).sum().backward()
    >>> optimizer.step()
    """

    def __init__(
        self,
        parameters: Iterable[Tensor],
        *,
        lr: float = 0.02,
        momentum: float = 0.95,
        weight_decay: float = 0.0,
    ) -> None:
        if not (lr >= 0 and weight_decay >= 0 and 0 <= momentum < 1):  # so that NaN is refused too
            raise ValueError(
                "lr and weight_decay must be at least 0 and momentum in [0, 1), "
                f"got {lr}, {weight_decay} and {momentum}"
            )
        given = list(parameters)
        if others := [tuple(p.shape) for p in given if p.ndim != 2]:
            raise ValueError(
                f"Muon updates matrices, got parameters of the shapes {others}: give them to AdamW"
            )
        super().__init__(given, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all matrices that have a gradient.

        Args:
            closure: Computes the loss and its gradients again, if given.

        Returns:
            What the closure returns.
        """
        with torch.enable_grad():
            loss = None if closure is None else closure()
        for group in self.param_groups:
            by_shape = defaultdict(list)
            for parameter in group["params"]:
                if parameter.grad is not None:
                    by_shape[parameter.shape].append(parameter)
            for alike in by_shape.values():
                self._update(alike, group)
        return loss

    def _update(self, alike: list[Tensor], group: dict[str, Any]) -> None:
        """Update matrices of one shape."""
        ahead = torch.stack([self._nesterov(p, group["momentum"]) for p in alike])
        far = group["lr"] * math.sqrt(max(1.0, ahead.size(1) / ahead.size(2)))
        for parameter, direction in zip(alike, orthogonalize(ahead), strict=True):
            parameter.mul_(1 - group["lr"] * group["weight_decay"])
            parameter.add_(direction, alpha=-far)

    def _nesterov(self, parameter: Tensor, momentum: float) -> Tensor:
        """Update the running mean of the gradients; return the gradient with Nesterov momentum."""
        state, grad = self.state[parameter], parameter.grad
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = torch.zeros_like(grad)
        mean = state["momentum_buffer"].lerp_(grad, 1 - momentum)
        return grad.lerp(mean, momentum)
