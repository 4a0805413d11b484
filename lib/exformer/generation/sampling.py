"""From logits to a token: temperature, top-k, top-p, min-p, and the loops of sampling and greedy decoding."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from exformer.check_settings import check_integer, check_real

_COLD = 0.01  # below this temperature the quotient of a logit may overflow
_NO_DISTRIBUTION = "the logits must give a distribution: some are not numbers, or no token is left"


@dataclass(frozen=True)
class Sampling:
    """Settings of sampling: how the logits change before a token is sampled, in the order of the fields.

    The order matters: top-p and min-p judge the probabilities at the given temperature, and only the tokens
    that top-k has left.

    Args:
        temperature: See :func:`apply_temperature`; 0 takes the most probable token, which is greedy decoding.
        top_k: See :func:`keep_top_k`; None keeps all tokens.
        top_p: See :func:`keep_top_p`; None keeps all tokens.
        min_p: See :func:`keep_min_p`; None keeps all tokens.
        repetition_penalty: See :func:`penalize_repetition`, the only one that acts before the temperature;
            None leaves it out.

    Raises:
        ValueError: If a setting is out of its range.

    >>> import torch
    >>> sampling = Sampling(top_k=2, top_p=0.5)
    >>> sampling.transform(torch.tensor([[0.1, 0.2, 0.3, 0.4]]).log()).exp()  # 4/7 reaches 0.5
    tensor([[0.0000, 0.0000, 0.0000, 0.4000]])
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None

    def __post_init__(self) -> None:
        """Check all settings, also those that greedy decoding does not use."""
        if not 0.0 <= check_real("temperature", self.temperature) < math.inf:
            raise ValueError(f"temperature must be 0 (greedy) or a number above, got {self.temperature}")
        self._cut(torch.zeros(1, 1))
        self._penalize(torch.zeros(1, 1), torch.zeros(1, 1, dtype=torch.int64))

    @classmethod
    def names(cls) -> list[str]:
        """List the settings."""
        return [each.name for each in fields(cls)]

    def transform(
        self, logits: Float[Tensor, "*batch vocab_size"], ids: Int64[Tensor, "*batch position"] | None = None
    ) -> Float[Tensor, "*batch vocab_size"]:
        """Change the logits of the next token; a temperature of 0 applies the repetition penalty only.

        Args:
            logits: Scores of the next token.
            ids: All tokens so far, for the repetition penalty.
        """
        logits = self._penalize(logits, ids)
        return logits if self.temperature == 0 else self._cut(apply_temperature(logits, self.temperature))

    def choose(
        self, logits: Float[Tensor, "batch vocab_size"], uniform: Float[Tensor, " batch"] | None
    ) -> Int64[Tensor, " batch"]:
        """Choose tokens by logits from :meth:`transform`.

        Args:
            logits: Scores of the next token.
            uniform: A random number per row, see :func:`draw`; None, or a temperature of 0, takes the most
                probable token.
        """
        if self.temperature == 0 or uniform is None:
            return best_token(logits)
        return draw(logits, uniform)

    def _penalize(self, logits: Tensor, ids: Tensor | None) -> Tensor:
        if self.repetition_penalty is None:
            return logits
        if ids is None:
            raise ValueError("a repetition_penalty needs the ids of the text so far")
        return penalize_repetition(logits, ids, self.repetition_penalty)

    def _cut(self, logits: Tensor) -> Tensor:
        logits = logits if self.top_k is None else keep_top_k(logits, self.top_k)
        logits = logits if self.top_p is None else keep_top_p(logits, self.top_p)
        return logits if self.min_p is None else keep_min_p(logits, self.min_p)


def apply_temperature(
    logits: Float[Tensor, "*batch vocab_size"], temperature: float
) -> Float[Tensor, "*batch vocab_size"]:
    r"""Sharpen the distribution by a temperature below 1, flatten it by one above 1.

    .. math:: p'_i \propto p_i^{1/T}, \qquad \mathrm{logits}' = \mathrm{logits} / T

    Toward 0 the most probable token takes all the probability; toward infinity all become equally probable.

    Raises:
        ValueError: If the temperature is not a number above 0.

    Source:
        Ackley, Hinton and Sejnowski 1985; Holtzman et al. 2020, section 3.3.

    >>> apply_temperature(torch.tensor([0.2, 0.8]).log(), 0.5).softmax(-1)  # odds of 1 : 4 become 1 : 16
    tensor([0.0588, 0.9412])
    """
    if not 0.0 < check_real("temperature", temperature) < math.inf:
        raise ValueError(
            f"temperature must be a number above 0, got {temperature}: "
            "for its limit at 0, the most probable token, use greedy decoding"
        )
    if temperature < _COLD:  # only differences count, and those to the largest logit can't overflow upward
        logits = logits - logits.amax(dim=-1, keepdim=True)
        return (logits.double() / temperature).to(logits.dtype)
    return logits / temperature


def keep_top_k(logits: Float[Tensor, "*batch vocab_size"], k: int) -> Float[Tensor, "*batch vocab_size"]:
    """Keep the k most probable tokens; the others get minus infinity.

    Among equally probable tokens the one with the lower id is kept. A k above the vocabulary's size keeps
    all.

    Raises:
        ValueError: If k is not an integer of 1 or more.

    Source:
        Fan, Lewis and Dauphin 2018.

    >>> keep_top_k(torch.tensor([1.0, 3.0, 2.0, 2.0]), 2)
    tensor([-inf, 3., 2., -inf])
    """
    k = check_integer("top_k", k, least=1)
    order = logits.argsort(dim=-1, descending=True, stable=True)
    return logits.scatter(-1, order[..., k:], -math.inf)


def keep_top_p(logits: Float[Tensor, "*batch vocab_size"], p: float) -> Float[Tensor, "*batch vocab_size"]:
    r"""Keep the nucleus: the smallest set of most probable tokens whose total probability reaches p.

    .. math:: V^{(p)} = \text{the smallest set with} \sum_{i \in V^{(p)}} p_i \ge p

    The token that crosses p is kept, so there is always one; with p = 1 all are kept. Among equally probable
    tokens the one with the lower id comes first.

    Raises:
        ValueError: If p is outside (0, 1].

    Source:
        Holtzman et al. 2020, section 3.1.

    >>> keep_top_p(torch.tensor([0.2, 0.5, 0.3]).log(), 0.6).exp()
    tensor([0.0000, 0.5000, 0.3000])
    """
    if not 0.0 < check_real("top_p", p) <= 1.0:
        raise ValueError(f"top_p must lie in (0, 1], got {p}: it is the probability that is kept")
    if p == 1.0:  # rounding must not make the sum reach 1 before the last token
        return logits
    order = logits.argsort(dim=-1, descending=True, stable=True)
    reached = logits.double().softmax(dim=-1).gather(-1, order).cumsum(dim=-1)
    n_kept = (reached < p).sum(dim=-1, keepdim=True) + 1  # the tokens below p, and the one that crosses it
    cut = torch.arange(logits.size(-1), device=logits.device) >= n_kept
    return logits.masked_fill(torch.zeros_like(cut).scatter(-1, order, cut), -math.inf)


def keep_min_p(logits: Float[Tensor, "*batch vocab_size"], p: float) -> Float[Tensor, "*batch vocab_size"]:
    r"""Keep the tokens that are at least p times as probable as the most probable one.

    .. math:: V = \{ i : p_i \ge p \cdot \max_j p_j \}

    So few tokens are left where the model is sure, and many where it is not.

    Raises:
        ValueError: If p is outside [0, 1].

    Source:
        Nguyen et al. 2024, section 3.

    >>> keep_min_p(torch.tensor([0.2, 0.5, 0.3]).log(), 0.5).exp()
    tensor([0.0000, 0.5000, 0.3000])
    """
    if not 0.0 <= check_real("min_p", p) <= 1.0:
        raise ValueError(f"min_p must lie in [0, 1], got {p}: it is a fraction of the largest probability")
    if p == 0.0:
        return logits
    least = logits.amax(dim=-1, keepdim=True) + math.log(p)
    return logits.masked_fill(logits < least, -math.inf)


def penalize_repetition(
    logits: Float[Tensor, "batch vocab_size"], ids: Int64[Tensor, "batch position"], penalty: float
) -> Float[Tensor, "batch vocab_size"]:
    r"""Make the tokens that are in the text already less probable, whatever their number.

    .. math::

        z'_i = \begin{cases} z_i / \theta & z_i > 0 \\ \theta z_i & \text{otherwise} \end{cases}
        \qquad \text{for all } i \in \text{ids}

    The paper divides negative logits too, which makes their tokens more probable; implementations multiply.

    Args:
        logits: Scores of the next token.
        ids: The tokens of each text so far.
        penalty: :math:`\theta`, from 0.01 to 100: 1 changes nothing, the paper takes 1.2; below 1 repetition
            is rewarded.

    Raises:
        ValueError: If the penalty is out of its range.

    Source:
        Keskar et al. 2019 (CTRL), section 4.1.

    >>> penalize_repetition(torch.tensor([[2.0, -1.0, 3.0]]), torch.tensor([[0, 1, 0]]), 2.0)
    tensor([[ 1., -2.,  3.]])
    """
    if not 0.01 <= check_real("repetition_penalty", penalty) <= 100.0:
        raise ValueError(f"repetition_penalty must lie from 0.01 to 100, got {penalty}: 1 changes nothing")
    seen = logits.gather(-1, ids)
    return logits.scatter(-1, ids, torch.where(seen > 0, seen / penalty, seen * penalty))


def greedy(
    next_logits: Callable[[Int64[Tensor, "batch position"]], Float[Tensor, "batch vocab_size"]],
    prompts: Int64[Tensor, "batch position"],
    *,
    eos_id: int | Sequence[int],
    max_new_tokens: int,
) -> list[list[int]]:
    r"""Append the most probable token, again and again, until the end token.

    .. math:: y_t = \arg\max_w \; p(w \mid y_{<t})

    Args:
        next_logits: Scores of the next token, given all tokens so far.
        prompts: The beginning of each sequence, at least one token each; see
            :func:`~exformer.data.padding.pad_left` for unequal ones.
        eos_id: The token that ends a sequence, or several.
        max_new_tokens: Largest number of new tokens.

    Returns:
        For each prompt the new tokens, without prompt and end token.

    Raises:
        ValueError: If the prompts are empty, ``max_new_tokens`` is below 1, or the scores give no
            distribution.

    Source:
        Sutskever, Vinyals and Le 2014, section 3.2, with a beam of 1.

    >>> following = torch.eye(4)[[1, 2, 3, 0]]  # after token 0 comes 1, after 1 comes 2, ...
    >>> greedy(lambda ids: following[ids[:, -1]], torch.tensor([[0], [2]]), eos_id=3, max_new_tokens=9)
    [[1, 2], []]
    """
    steps = decode(next_logits, prompts, choose=best_token, eos_id=eos_id, max_new_tokens=max_new_tokens)
    return _cut_at_end(steps, eos_id=eos_id)


def sample(
    next_logits: Callable[[Int64[Tensor, "batch position"]], Float[Tensor, "batch vocab_size"]],
    prompts: Int64[Tensor, "batch position"],
    *,
    eos_id: int | Sequence[int],
    max_new_tokens: int,
    generator: torch.Generator,
    logits_processor: Callable[[Float[Tensor, "batch vocab_size"]], Float[Tensor, "batch vocab_size"]]
    | None = None,
) -> list[list[int]]:
    r"""Append a token sampled from the model's distribution, again and again, until the end token.

    .. math:: y_t \sim p(\cdot \mid y_{<t})

    The random numbers of a sequence are generated together, those of the first sequence first. So a text does
    not depend on the rest of its batch: one prompt after the other, with one generator, gives the same texts.

    Args:
        next_logits: Scores of the next token, given all tokens so far.
        prompts: The beginning of each sequence, at least one token each.
        eos_id: The token that ends a sequence, or several.
        max_new_tokens: Largest number of new tokens.
        generator: The random number generator; the same seed gives the same texts.
        logits_processor: Changes the scores first, for example
            ``lambda logits: keep_top_p(apply_temperature(logits, 0.7), 0.9)``.

    Returns:
        For each prompt the new tokens, without prompt and end token.

    Raises:
        ValueError: If the prompts are empty, ``max_new_tokens`` is below 1, or the scores give no
            distribution.

    Source:
        Holtzman et al. 2020, section 3.

    >>> uniform = torch.zeros(1, 4)  # whatever the text, each of four tokens has probability 1/4
    >>> rng = torch.Generator().manual_seed(12)
    >>> sample(lambda ids: uniform, torch.tensor([[1]]), eos_id=0, max_new_tokens=5, generator=rng)
    [[2, 2, 1]]
    """
    check_prompts(prompts, max_new_tokens=max_new_tokens)
    rows = [
        torch.rand(max_new_tokens, generator=generator, device=generator.device, dtype=torch.float64)
        for _ in prompts
    ]
    uniform = iter(torch.stack(rows, dim=1))  # one row of numbers per step

    def choose(logits: Tensor) -> Tensor:
        return draw(logits if logits_processor is None else logits_processor(logits), next(uniform))

    steps = decode(next_logits, prompts, choose=choose, eos_id=eos_id, max_new_tokens=max_new_tokens)
    return _cut_at_end(steps, eos_id=eos_id)


def decode(
    next_logits: Callable[[Int64[Tensor, "batch position"]], Float[Tensor, "batch vocab_size"]],
    prompts: Int64[Tensor, "batch position"],
    *,
    choose: Callable[[Float[Tensor, "batch vocab_size"]], Int64[Tensor, " batch"]],
    eos_id: int | Sequence[int],
    max_new_tokens: int,
) -> Iterator[Int64[Tensor, " batch"]]:
    r"""Decode autoregressively: choose a token for each sequence, append it, until all have ended.

    .. math:: y_t = \mathrm{choose}\left(p(\cdot \mid y_{<t})\right)

    Args:
        next_logits: Scores of the next token, given all tokens so far. If it has a method ``reorder``, as
            :class:`~exformer.generation.next_token.Continuation` has, it is told which rows are left, and
            where a quarter of its rows have ended it has no more of them.
        prompts: The beginning of each sequence.
        choose: Chooses one token per sequence by its scores; those of a sequence that has ended do not count.
        eos_id: The token that ends a sequence; after it, a sequence gets no other token. Of several, the
            first stands for each.
        max_new_tokens: Largest number of steps.

    Yields:
        The tokens of one step.

    Raises:
        ValueError: If the prompts are empty, or ``max_new_tokens`` is below 1.
    """
    check_prompts(prompts, max_new_tokens=max_new_tokens)
    ends = end_tokens(eos_id)
    eos_id = ends[0]
    ids, rows = prompts, torch.arange(len(prompts), device=prompts.device)  # rows: those to score
    finished = torch.zeros(len(prompts), dtype=torch.bool, device=prompts.device)
    for _ in range(max_new_tokens):
        logits = next_logits(ids if len(rows) == len(ids) else ids[rows])
        if len(rows) < len(ids):
            logits = logits.new_zeros(len(ids), logits.size(-1)).index_copy(0, rows, logits)
        tokens = first_end(choose(logits), ends).masked_fill(finished, eos_id)  # (batch,)
        yield tokens
        ids = torch.cat((ids, tokens[:, None]), dim=1)
        finished = finished | (tokens == eos_id)
        if finished.all():
            break
        left = (~finished[rows]).nonzero()[:, 0]
        if hasattr(next_logits, "reorder") and len(left) <= 0.75 * len(rows):  # to drop rows moves a cache
            next_logits.reorder(left)
            rows = rows[left]


def end_tokens(eos_id: int | Sequence[int]) -> list[int]:
    """Return the tokens that end a sequence as a list, also if there is one."""
    return list(eos_id) if isinstance(eos_id, Sequence) else [eos_id]


def first_end(tokens: Int64[Tensor, "*shape"], ends: Sequence[int]) -> Int64[Tensor, "*shape"]:
    """Put the first of the end tokens in the place of each of them."""
    if len(ends) == 1:
        return tokens
    return tokens.masked_fill(torch.isin(tokens, torch.tensor(ends, device=tokens.device)), ends[0])


def best_token(logits: Float[Tensor, "batch vocab_size"]) -> Int64[Tensor, " batch"]:
    """Return the most probable token of each row; among equals the one with the lowest id.

    Raises:
        ValueError: If a row gives no distribution.
    """
    best, tokens = logits.max(dim=-1)
    check_distribution(best)
    return tokens


def draw(
    logits: Float[Tensor, "batch vocab_size"], uniform: Float[Tensor, " batch"]
) -> Int64[Tensor, " batch"]:
    r"""Sample a token for each row: the first one at which the cumulative probability exceeds u.

    .. math:: y = \min \Big\{ i : \sum_{j \le i} p_j > u \Big\}

    Args:
        logits: Scores; a token with minus infinity is never sampled.
        uniform: :math:`u`, one random number per row, from 0 up to but not including 1.

    Raises:
        ValueError: If a row gives no distribution, or has no number from 0 up to but not including 1.

    >>> draw(torch.tensor([[0.5, 0.0, 0.5]]).log().expand(3, -1), torch.tensor([0.0, 0.4, 0.6]))
    tensor([0, 0, 2])
    """
    if uniform.shape != logits.shape[:1] or not ((uniform >= 0) & (uniform < 1)).all():
        raise ValueError(
            f"each of the {len(logits)} rows needs a number from 0 up to but not including 1, "
            f"got {uniform.tolist()}"
        )
    cumulative = (
        logits.to(uniform.device, torch.float64).softmax(dim=-1).cumsum(dim=-1)
    )  # (batch, vocab_size)
    total = cumulative[:, -1:]  # 1, but for rounding
    check_distribution(total)
    tokens = torch.searchsorted(cumulative, total * uniform[:, None].double(), right=True)
    return tokens[:, 0].to(logits.device)


def check_prompts(prompts: Tensor, *, max_new_tokens: int) -> None:
    """Check the prompts and the number of new tokens.

    Raises:
        ValueError: If the prompts are not (batch, position) or empty, or ``max_new_tokens`` is below 1.
    """
    if prompts.dim() != 2 or prompts.numel() == 0:
        raise ValueError(
            "prompts must be (batch, position) with at least one token each, "
            f"got the shape {tuple(prompts.shape)}"
        )
    check_integer("max_new_tokens", max_new_tokens, least=1)


def check_distribution(of_rows: Tensor) -> None:
    """Check a number of each row that is finite if and only if its scores give a distribution."""
    if not of_rows.isfinite().all():
        raise ValueError(_NO_DISTRIBUTION)


def check_log_probabilities(values: Tensor) -> None:
    """Check log-probabilities of any shape; logits that give no distribution become NaN.

    Raises:
        ValueError: If one is NaN.
    """
    if values.isnan().any():
        raise ValueError(_NO_DISTRIBUTION)


def _cut_at_end(steps: Iterator[Tensor], *, eos_id: int | Sequence[int]) -> list[list[int]]:
    """Return the tokens of each sequence before its end token."""
    eos_id = end_tokens(eos_id)[0]
    rows = torch.stack(list(steps), dim=1).tolist()
    return [row[: row.index(eos_id)] if eos_id in row else row for row in rows]
