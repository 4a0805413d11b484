"""Speculative decoding: the target's distribution to 1e-12, by adding up every way to each text."""

import itertools
from collections import defaultdict
from collections.abc import Callable

import pytest
import torch
from test_decoder_lm import build
from torch_twins import close

from exformer import CharTokenizer, DecoderLM, DecoderLMConfig, Sampling, generate
from exformer.generation import speculative
from exformer.generation.next_token import Continuation, next_logits_of
from exformer.generation.speculative import speculate, speculative_step
from exformer.nn.cache import KVCache

pytestmark = pytest.mark.usefixtures("float64")
VOCAB = 3


class Paths:
    """Run a program once for every outcome of its random choices, with the probability of each run."""

    def __init__(self) -> None:
        self._script: list[tuple[int, int]] = []  # choice, number of choices
        self._at, self.probability = 0, 1.0

    def draw(self, weights: torch.Tensor) -> int:
        if self._at == len(self._script):
            self._script.append((0, len(weights)))
        choice, _ = self._script[self._at]
        self._at += 1
        self.probability *= (weights[choice] / weights.sum()).item()
        return choice

    def run(self, program: Callable[[], tuple[int, ...]]) -> dict[tuple[int, ...], float]:
        found: dict[tuple[int, ...], float] = defaultdict(float)
        while True:
            self._at, self.probability = 0, 1.0
            try:
                result = program()
                found[result] += self.probability
            except ImpossibleError:
                pass
            while self._script and self._script[-1][0] + 1 == self._script[-1][1]:
                self._script.pop()
            if not self._script:
                return found
            choice, n = self._script.pop()
            self._script.append((choice + 1, n))


class ImpossibleError(Exception):
    """The run has come to a choice of probability 0."""


class Possible(Paths):
    """Leave out what has probability 0: a program need not be ready for it."""

    def draw(self, weights: torch.Tensor) -> int:
        choice = super().draw(weights)
        if self.probability == 0:
            raise ImpossibleError
        return choice


def table(seed: int) -> Callable[[list[int]], torch.Tensor]:
    """Return a language: a distribution after each text, some of them with zeros."""

    def after(ids: list[int]) -> torch.Tensor:
        number = seed + sum((token + 1) * 5**place for place, token in enumerate(ids))
        p = torch.rand(VOCAB, generator=torch.Generator().manual_seed(number), dtype=torch.float64) ** 2
        p[number % (2 * VOCAB) :][:1] = 0
        return p / p.sum()

    return after


def texts_of(p: Callable[[list[int]], torch.Tensor], n: int) -> dict[tuple[int, ...], float]:
    found = {}
    for text in itertools.product(range(VOCAB), repeat=n):
        found[text] = 1.0
        for t, token in enumerate(text):
            found[text] *= p(list(text[:t]))[token].item()
    return found


@pytest.mark.parametrize("n_drafts", [0, 1, 2])
def test_every_text_of_three_tokens(n_drafts):
    p, q, paths = table(1), table(2), Possible()

    def write() -> tuple[int, ...]:
        text: list[int] = []
        while len(text) < 3:
            text += speculative_step(
                text,
                target=lambda ids, n: torch.stack(
                    [p(ids[:end]) for end in range(len(ids) - n + 1, len(ids) + 1)]
                ),
                draft=q,
                n_drafts=n_drafts,
                draw=paths.draw,
            )
        return tuple(text[:3])

    found = paths.run(write)
    for text, wanted in texts_of(p, 3).items():
        assert abs(found[text] - wanted) < 1e-12, text


SETTINGS = {
    "plain": Sampling(),
    "top-k": Sampling(top_k=2),
    "temperature and top-p": Sampling(temperature=0.5, top_p=0.8),
    "penalty": Sampling(repetition_penalty=1.7),
}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_a_draft_and_its_settings_change_no_probability(settings, monkeypatch):
    # Bug of others: the draft is sampled with settings that its ratio does not know (transformers#47932).
    target, draft = (build_small(seed) for seed in (3, 4))
    paths = Possible()

    def write() -> tuple[int, ...]:
        steps = speculate(
            target,
            [1],
            draft=Continuation(draft),
            n_drafts=1,
            max_new_tokens=2,
            sampling=settings,
            uniform=iter(()),
        )
        return tuple(token for each in steps for token in each)

    step = speculative_step
    monkeypatch.setattr(
        speculative,
        "speculative_step",
        lambda *args, **options: step(*args, **{**options, "draw": paths.draw}),
    )
    found = paths.run(write)
    scores = next_logits_of(target)

    def p(ids: list[int]) -> torch.Tensor:
        text = torch.tensor([[1, *ids]])
        return settings.transform(scores(text), text)[0].softmax(dim=-1)

    for text, wanted in texts_of(p, 2).items():
        assert abs(found[text] - wanted) < 1e-12, text


def test_a_rejection_by_rounding_draws_from_the_target() -> None:
    p, q, drawn = torch.tensor([0.5, 0.5, 0.0]), torch.tensor([0.5, 0.5, 1e-300]), []

    def draw(weights: torch.Tensor) -> int:
        drawn.append(weights.tolist())
        return 0  # the first proposal, its rejection, and the first token in its place

    speculative_step([], target=lambda ids, n: p.expand(n, 3), draft=lambda ids: q, n_drafts=1, draw=draw)
    assert drawn[-1] == p.tolist()


def test_a_pass_reads_the_new_tokens_alone() -> None:
    model, read = build_small(3), []
    model.embedding.register_forward_hook(lambda layer, inputs, output: read.append(inputs[0].size(1)))
    draft = {"draft": lambda ids: torch.zeros(1, VOCAB), "n_drafts": 1, "max_new_tokens": 7}
    list(speculate(model, [1, 2], **draft, sampling=Sampling(), uniform=iter(torch.rand(99))))
    assert read[0] == 2 + 1
    assert max(read[1:]) == 1 + 1


def build_small(seed: int) -> DecoderLM:
    torch.manual_seed(seed)
    sizes = {"d_model": 8, "n_heads": 2, "d_ff": 7, "n_layers": 2, "max_len": 9}
    model = DecoderLM(DecoderLMConfig(VOCAB, dropout=0.0, pad_id=None, **sizes)).eval()
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.7)
    return model


CHARACTERS = CharTokenizer.from_texts(["abcdefg "])


def build_model(seed: int, **changes: object) -> DecoderLM:
    torch.manual_seed(seed)
    sizes = {"d_model": 8, "n_heads": 2, "d_ff": 7, "n_layers": 2, "max_len": 11, "dropout": 0.0}
    model = DecoderLM(DecoderLMConfig(CHARACTERS.vocab_size, **{**sizes, **changes})).eval()
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.5)
    return model


def counted(ids: torch.Tensor) -> torch.Tensor:
    return torch.sin(torch.arange(CHARACTERS.vocab_size) * (1.0 + ids[:, -1:]))


@pytest.mark.parametrize(
    ("draft", "n_drafts", "positions"),
    [
        (lambda: counted, 3, "learned"),
        (lambda: build_model(8), 20, "rotary"),
        (lambda: build_model(9, max_len=5), 3, "rotary"),
        (lambda: next_logits_of(build_model(8, window=3, positions="rotary")), 3, "rotary"),
    ],
    ids=["function", "model", "model with a shorter context", "model with a window, without a cache"],
)
def test_a_greedy_text_is_the_same(draft, n_drafts, positions):
    model = build_model(7, positions=positions)
    options = {"max_new_tokens": 20, "temperature": 0.0}  # the context moves several times
    wanted = generate(model, CHARACTERS, ["abc", "g"], **options)
    assert generate(model, CHARACTERS, ["abc", "g"], draft=draft(), n_drafts=n_drafts, **options) == wanted


def test_the_model_as_its_own_draft_is_never_rejected():
    model = build_model(7)
    uniform = iter(torch.rand(200, dtype=torch.float64))
    options = {"max_new_tokens": 10, "sampling": Sampling(), "uniform": uniform}
    steps = [*speculate(model, [1], draft=model, n_drafts=4, **options)]
    assert [len(each) for each in steps] == [5, 5]


def test_a_seed_a_stop_string_and_the_length():
    model = build_model(7)
    options = {"draft": counted, "n_drafts": 3, "seed": 5}
    whole = generate(model, CHARACTERS, "abc", max_new_tokens=9, **options)
    assert whole == generate(model, CHARACTERS, "abc", max_new_tokens=9, **options)
    stop = whole[2:4]
    assert (
        generate(model, CHARACTERS, "abc", max_new_tokens=9, stop=stop, **options)
        == whole[: whole.index(stop)]
    )
    for n in range(1, 9):
        assert len(CHARACTERS.encode(generate(model, CHARACTERS, "a", max_new_tokens=n, **options))) <= n


def test_the_end_token_ends_a_text():
    model = build_model(7)
    table = torch.full((CHARACTERS.vocab_size,), -50.0)
    table[CHARACTERS.eos_id] = 50.0
    always = lambda ids: table[None]  # noqa: E731
    model.logits = lambda states: table.expand(*states.shape[:-1], -1)
    assert generate(model, CHARACTERS, "abc", max_new_tokens=9, draft=always, seed=1) == ""


REFUSED = {
    "must score the model's": lambda m: generate(m, CHARACTERS, draft=lambda ids: torch.zeros(1, 4)),
    "draft must be a language model, or a": lambda m: generate(m, CHARACTERS, draft="gpt2"),
    "n_drafts must be at least 1, got 0": lambda m: generate(m, CHARACTERS, draft=counted, n_drafts=0),
    "n_drafts must lie from 1 to 1,000": lambda m: generate(m, CHARACTERS, draft=counted, n_drafts=2000),
    "leave out the draft": lambda m: generate(m, CHARACTERS, draft=counted, num_beams=2),
    "the logits must give a distribution": lambda m: generate(
        m, CHARACTERS, draft=lambda ids: torch.full((1, CHARACTERS.vocab_size), torch.nan), seed=0
    ),
    "can't go back after a rejection": lambda m: generate(
        build_model(7, window=3), CHARACTERS, draft=counted, max_new_tokens=3
    ),
    "a draft that attends to all .* got one with a window of 3": lambda m: generate(
        m, CHARACTERS, draft=build_model(8, window=3), max_new_tokens=1
    ),
}


@pytest.mark.parametrize("says", REFUSED)
@pytest.mark.usefixtures("unchecked_shapes")
def test_a_draft_that_cannot_serve_is_refused(says):
    with pytest.raises(ValueError, match=says):
        REFUSED[says](build_model(7))


def test_a_text_goes_back_and_on_differently():
    model, ids = build(), torch.tensor([[5, 16, 3, 7, 11, 2]])
    other = torch.tensor([[5, 16, 3, 9, 1]])
    score = Continuation(model)
    close(score.score_last(ids, 4), model(ids)[:, -4:].detach())
    score.truncate(3)
    close(score.score_last(other, 2), model(other)[:, -2:].detach())
    score.truncate(40)  # there is nothing to forget
    with pytest.raises(ValueError, match="can't score after the last 2 tokens: 1 of the texts' 6 are new"):
        score.score_last(torch.cat((other, ids[:, :1]), dim=1), 2)
    score.truncate(0)
    close(score(ids), model(ids)[:, -1].detach())


def test_a_cache_goes_back_by_hand():
    for window in (None, 3):
        cache = KVCache(window=window)
        cache.append(torch.arange(2.0).view(1, 1, 2, 1), torch.zeros(1, 1, 2, 1))
        cache.truncate(1)
        k, _ = cache.append(torch.tensor([7.0]).view(1, 1, 1, 1), torch.zeros(1, 1, 1, 1))
        assert (cache.length, k.flatten().tolist()) == (2, [0, 7])
    with pytest.raises(ValueError, match="can't truncate to 3 positions: the cache holds 2"):
        cache.truncate(3)
    cache.append(torch.zeros(1, 1, 4, 1), torch.zeros(1, 1, 4, 1))
    cache.truncate(6)  # there is nothing to forget
    assert cache.length == 6
    with pytest.raises(ValueError, match="can't go back from 6 positions to 5: with a window of 3 the cache"):
        cache.truncate(5)
