"""Ways in which a language model learns a second language, and what each leaves of the first."""

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from random import Random

import torch
from torch import Tensor, nn

from exformer import DecoderLM, DecoderLMConfig, WordTokenizer, add_lora, cross_entropy, generate, pad
from exformer.corpora import english
from exformer.nn.eval_mode import evaluating
from exformer.nn.lora import LoRALinear
from exformer.training.gradient_clipping import clip_gradients
from exformer.training.optimizers import adamw
from exformer.training.schedules import linear_schedule
from exformer_lessons.training.programs import encode, training_rows

Rows = Sequence[list[int]]

#: The linear layers of the model.
LINEAR = ("w_q", "w_k", "w_v", "w_o", "w_1", "w_2")
#: Steps after which a run is measured.
POINTS = (0, 5, 10, 15, 20, 25, 30, 40, 50, 60, 80, 100, 120, 150, 175, 200)
#: The words of the toy English, and last a token that none of its texts contains.
TOKENIZER = WordTokenizer.from_texts([*english.WORDS, "~"])
TAG = TOKENIZER.encode("~")[0]
PROMPT_LENGTH = 8


@dataclass(frozen=True)
class Way:
    """How a model is adapted.

    Args:
        part: What trains: "all" weights, "lora", the linear "layers" that LoRA adds to, the "head", or the
            vectors of a "prompt".
        rank: Rank of LoRA.
        old: Probability with which a training text is one of the first language.
        tag: Whether texts of the second language begin with a token of their own.
        dialect: "reversed" word order, or "swapped" words.
        steps: Number of steps, after which the learning rate has fallen to zero.
    """

    part: str = "all"
    rank: int = 0
    old: float = 0.0
    tag: bool = False
    dialect: str = "reversed"
    steps: int = POINTS[-1]


class Prompted(nn.Module):
    """A frozen model that reads trained vectors after the first token of every text."""

    def __init__(self, model: DecoderLM, length: int) -> None:
        super().__init__()
        self.model = model.requires_grad_(False)
        words = torch.randint(3, TAG, (1, length))
        self.prompt = nn.Parameter(model.embedding(words)[0].detach().clone())

    def forward(self, ids: Tensor) -> Tensor:
        """Return the logits after each token of the texts."""
        x = self.model.embedding(ids)  # (batch, position, d_model)
        x = torch.cat([x[:, :1], self.prompt.expand(len(ids), -1, -1), x[:, 1:]], dim=1)
        for layer in self.model.layers:
            x = layer(x, causal=True)
        return self.model.logits(self.model.norm(x))[:, len(self.prompt) :]


@cache
def pretrained(seed: int, *, language: Way | None = None) -> DecoderLM:
    """Train a model of the first language, the toy English, or of the second one of a way."""
    torch.manual_seed(seed)
    sizes = {"d_model": 64, "d_ff": 256, "n_heads": 4, "n_layers": 2, "dropout": 0.0}
    model, rng = DecoderLM(DecoderLMConfig(TOKENIZER.vocab_size, **sizes, positions="rotary")), Random(seed)
    rows = training_rows(24_000, 0)
    rows = translate(rows, language) if language else rows
    for _ in _steps(model, lambda: rng.choices(rows, k=64), peak=5e-3, n=400):
        pass
    return model.eval()


def prepare(base: DecoderLM, way: Way) -> nn.Module:
    """Return a copy of a model in which only what the way trains is not frozen."""
    model = copy.deepcopy(base)
    if way.part == "lora":
        return add_lora(model, rank=way.rank, alpha=2.0 * way.rank, targets=LINEAR)
    if way.part == "prompt":
        return Prompted(model, PROMPT_LENGTH)
    if way.part == "layers":
        for name, parameter in model.named_parameters():
            parameter.requires_grad_(name.endswith(tuple(f"{layer}.weight" for layer in LINEAR)))
    if way.part == "head":
        model.requires_grad_(False)
        model.output = nn.Linear(model.config.d_model, model.config.vocab_size, bias=False)
        model.output.weight = nn.Parameter(model.embedding.weight.detach().clone())  # no longer tied
    return model


def adapt(
    base: DecoderLM, way: Way, *, peak: float, seed: int, until: float = 0.0
) -> tuple[nn.Module, list[list[float]]]:
    """Adapt a copy of a model to the second language.

    Args:
        base: A model of the first language.
        way: What trains, and on which texts.
        peak: Largest learning rate.
        seed: Of the new weights and of the order of the texts.
        until: Excess in the second language at which a training ends early.

    Returns:
        The model, and what was :func:`measured` after each of the ``POINTS`` up to the last step.
    """
    torch.manual_seed(seed)
    model, rng = prepare(base, way), Random(seed)
    old, new = training_rows(24_000, 0), translate(training_rows(4_000, 1), way)
    curve = [measured(model, way)]

    def batch() -> Rows:
        n_old = sum(rng.random() < way.old for _ in range(32))
        return rng.choices(new, k=32 - n_old) + rng.choices(old, k=n_old)

    for step in _steps(model, batch, peak=peak, n=way.steps):
        if step in POINTS or step == way.steps:
            curve.append(measured(model, way))
            if curve[-1][0] < until:
                break
    return model.eval(), curve


def relearn(model: nn.Module, *, peak: float, seed: int) -> float:
    """Train all weights for 20 steps in the first language, and return the excess there."""
    rng = Random(1000 + seed)
    model.requires_grad_(True)
    for _ in _steps(model, lambda: rng.choices(training_rows(24_000, 0), k=32), peak=peak, n=20):
        pass
    return excesses(model, Way())[1]


def translate(rows: Rows, way: Way) -> Rows:
    """Return sentences in the second language; each has one translation and is the translation of one."""
    if way.dialect == "swapped":
        words = _swapped_words()
        translated = [[words.get(token, token) for token in row] for row in rows]
    else:
        translated = [[row[0], *row[-2:0:-1], row[-1]] for row in rows]
    return [[TAG, *row[1:]] for row in translated] if way.tag else translated


def excesses(model: nn.Module, way: Way) -> list[float]:
    """Return what a model lacks in the second language and in the first, in nats per token."""
    rows, nats = _test_rows()
    with evaluating(model), torch.no_grad():
        return [round(loss_of(model, text).item() - nats, 4) for text in (translate(rows, way), rows)]


def measured(model: nn.Module, way: Way) -> list[float]:
    """Return the two excesses, and the mean probability that a model gives to words that English allows."""
    rows, nats = _test_rows()
    ids = pad(rows, pad_id=TOKENIZER.pad_id)
    with evaluating(model), torch.no_grad():
        in_new, logits = loss_of(model, translate(rows, way)), model(ids[:, :-1])
        in_old = cross_entropy(logits, ids[:, 1:], pad_id=TOKENIZER.pad_id)
        allowed = (logits.softmax(dim=-1) * _allowed()).sum(dim=-1)
    found = [
        in_new.item() - nats,
        in_old.item() - nats,
        allowed[ids[:, 1:] != TOKENIZER.pad_id].mean().item(),
    ]
    return [round(each, 4) for each in found]


def loss_of(model: Callable[[Tensor], Tensor], rows: Rows) -> Tensor:
    """Return the mean loss over the tokens of texts."""
    ids = pad(rows, pad_id=TOKENIZER.pad_id)
    return cross_entropy(model(ids[:, :-1]), ids[:, 1:], pad_id=TOKENIZER.pad_id)


def trained_weights(model: nn.Module) -> int:
    """Return how many weights train."""
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


def change_beside_old(model: nn.Module, base: DecoderLM, way: Way) -> list[float]:
    r"""Return how large the changes of the linear layers' outputs are beside the outputs of the old weights.

    Args:
        model: A copy of the base that was adapted, with LoRA or without.
        base: The model as it was.
        way: How the copy was adapted.

    Returns:
        The mean of :math:`\|\Delta W x\| / \|W x\|` over layers and tokens, in the second language and in
        the first. With LoRA, :math:`\Delta W = \frac{\alpha}{r} B A`.
    """
    rows, _ = _test_rows()
    return [_change_beside_old(model, base, texts) for texts in (translate(rows, way), rows)]


def continue_text(model: DecoderLM, beginning: str, *, n: int = 1, seed: int = 0) -> list[str]:
    """Return texts with which a model continues a beginning."""
    return [*generate(model.eval(), TOKENIZER, [beginning] * n, max_new_tokens=12, seed=seed)]


def _change_beside_old(model: nn.Module, base: DecoderLM, rows: Rows) -> float:
    ids = pad([row[:-1] for row in rows], pad_id=TOKENIZER.pad_id)
    words, found = ids != TOKENIZER.pad_id, []
    old = {
        name.removesuffix(".weight"): weight
        for name, weight in base.named_parameters()
        if name.endswith(tuple(f"{layer}.weight" for layer in LINEAR))
    }

    def compare(name: str, layer: nn.Linear, inputs: tuple[Tensor], _: Tensor) -> None:
        change = layer.weight - old[name]
        if isinstance(layer, LoRALinear):
            change = change + layer.alpha / layer.rank * layer.lora_b @ layer.lora_a
        x = inputs[0][words]
        found.append(((x @ change.T).norm(dim=-1) / (x @ old[name].T).norm(dim=-1)).mean().item())

    hooks = [
        layer.register_forward_hook(partial(compare, name))
        for name, layer in model.named_modules()
        if name in old
    ]
    with evaluating(model), torch.no_grad():
        model(ids)
    for hook in hooks:
        hook.remove()
    return sum(found) / len(found)


@cache
def _test_rows() -> tuple[Rows, float]:
    sentences = english.sample(250, seed=10_000)
    return encode(sentences), english.nats_per_token(sentences)


@cache
def _allowed() -> Tensor:
    """Return which tokens the grammar allows after each one of the test sentences (text, position, token)."""
    rows, _ = _test_rows()
    allowed = torch.zeros(len(rows), max(map(len, rows)) - 1, TOKENIZER.vocab_size)
    for n, row in enumerate(rows):
        for t in range(1, len(row)):
            for word in english.prefix_distribution(TOKENIZER.decode(row[1:t])):
                token = TOKENIZER.eos_id if word == english.END else TOKENIZER.encode(word)[0]
                allowed[n, t - 1, token] = 1.0
    return allowed


@cache
def _swapped_words() -> dict[int, int]:
    """Return which of 60 words takes the place of which: they are neither the most frequent nor rare."""
    counts = torch.bincount(torch.tensor([token for row in training_rows(24_000, 0) for token in row]))
    words = counts.argsort(descending=True, stable=True)[12:72].tolist()
    return dict(zip(words, Random(3).sample(words, k=len(words)), strict=True))


def _steps(model: nn.Module, batch: Callable[[], Rows], *, peak: float, n: int) -> Iterator[int]:
    """Train what is not frozen, and yield the number of each step."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = adamw(parameters)
    for step in range(1, n + 1):
        for group in optimizer.param_groups:
            group["lr"] = linear_schedule(step, peak=peak, warmup=n // 10, total=n)
        optimizer.zero_grad()
        loss_of(model.train(), batch()).backward()
        clip_gradients(parameters, max_norm=1.0)
        optimizer.step()
        yield step
