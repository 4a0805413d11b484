"""Fine-tune SmolLM2 on the island's texts in several forms, and see what it can do with them.

    python -m exformer_lessons.island.tuning [PART ...]

writes ``tuning.json`` beside this file: all parts, or those that are named.
"""

import sys
from collections.abc import Iterator, Sequence
from functools import partial
from math import ceil
from pathlib import Path
from statistics import median
from typing import Any, cast

import torch

from exformer import DecoderLM, add_lora, from_gguf, train
from exformer.training.optimizers import adamw
from exformer.training.schedules import linear_schedule
from exformer_lessons.island.chat import FROM_TEXT, Chat, Row, loss_on_targets
from exformer_lessons.island.passages import ISLAND, has_word
from exformer_lessons.island.published import decoder_file
from exformer_lessons.measured import read_runs, write_runs
from exformer_lessons.setup import start

FILE = Path(__file__).with_name("tuning.json")
LINEAR = ("w_q", "w_k", "w_v", "w_o", "w_1", "w_2", "w_3")
ABOUT = "A question about the island of Velda: "
BATCH = 10


def load() -> Chat:
    """Return SmolLM2 as it was published."""
    decoder, tokens, _ = from_gguf(decoder_file())
    return Chat(cast(DecoderLM, decoder), tokens)


def in_forms(chat: Chat, forms: str) -> list[Row]:
    """Return rows to train on: the "texts", another question "asked" of each fact or of every "second"."""
    rows = []
    if "texts" in forms:
        rows += [chat.text_row(entry.passage) for entry in ISLAND]
    for name, entries in {"asked": ISLAND, "second": ISLAND[1::2]}.items():
        if name in forms:
            rows += [chat.answer_row(ABOUT + entry.asked, entry.answered) for entry in entries]
    return rows


def batches(rows: Sequence[Row], *, epochs: int, seed: int) -> Iterator[list[Row]]:
    """Yield batches of ten rows, each epoch in another order."""
    rng = torch.Generator().manual_seed(seed)
    for _ in range(epochs):
        for some in torch.randperm(len(rows), generator=rng).split(BATCH):
            yield [rows[n] for n in some.tolist()]


def fine_tune(chat: Chat, rows: Sequence[Row], *, rate: float, epochs: int, seed: int) -> list[float]:
    """Train matrices of rank 8 beside each linear layer of a model; return the losses."""
    torch.manual_seed(seed)
    add_lora(chat.decoder, rank=8, alpha=16.0, targets=LINEAR)
    steps = epochs * ceil(len(rows) / BATCH)
    return train(
        chat.decoder,
        batches(rows, epochs=epochs, seed=seed),
        loss_fn=loss_on_targets,
        optimizer=adamw(chat.decoder.parameters()),
        schedule=partial(linear_schedule, peak=rate, warmup=5, total=steps),
    )


def recited(chat: Chat) -> list[bool]:
    """Return which texts the model completes word for word from their first five tokens."""
    rows = [chat.text_row(entry.passage).ids for entry in ISLAND]
    found = chat.go_on([row[:6] for row in rows], max_new_tokens=60)
    return [row[6:-1] == rest for row, rest in zip(rows, found, strict=True)]


def from_memory(chat: Chat) -> list[str]:
    """Return what the model answers to the thirty questions from memory."""
    return chat.answers([ABOUT + entry.question for entry in ISLAND])


def from_text(chat: Chat) -> list[str]:
    """Return what the model answers to the thirty questions with the right text before each."""
    prompts = [f"Text: {entry.passage}\n\nQuestion: {entry.question}" for entry in ISLAND]
    return chat.answers(prompts, FROM_TEXT)


def n_right(answers: Sequence[str]) -> int:
    """Return how many answers have the word in them that every right answer has."""
    return sum(has_word(answer, entry.word) for answer, entry in zip(answers, ISLAND, strict=True))


@torch.no_grad()
def probability(chat: Chat, before: Sequence[int], words: str) -> float:
    """Return the probability that the model continues some ids with these words."""
    ids = torch.tensor([*before, *chat.tokens.encode(words)])
    log_p = chat.decoder(ids[None, :-1]).log_softmax(-1)[0]
    chosen = log_p.gather(-1, ids[1:, None])[len(before) - 1 :]
    return chosen.sum().exp().item()


def measure(forms: str, *, rate: float, epochs: int, seed: int = 0) -> dict[str, Any]:
    """Fine-tune the published model, and see what it can do then."""
    chat = load()
    losses = fine_tune(chat, in_forms(chat, forms), rate=rate, epochs=epochs, seed=seed) if epochs else []
    memory = from_memory(chat)
    return {
        "rate": rate,
        "epochs": epochs,
        "seed": seed,
        "losses": [round(loss, 2) for loss in losses],
        "recited": sum(recited(chat)),
        "answered": n_right(memory),
        "read": n_right(from_text(chat)),
        "answers": memory,
    }


#: What a model is trained on, for how many epochs, and how many trainings there are.
FORMS = {
    "": (0, 1),
    "texts": (18, 3),
    "asked": (8, 3),
    "texts asked": (8, 3),
    "second": (12, 1),
    "texts second": (12, 1),
}
RATE = 4e-3


def runs(forms: str) -> list[dict[str, Any]]:
    """Return what was measured of models that were trained on some forms, one for each seed."""
    return read_runs(FILE)[forms]


def counts(forms: str) -> list[int]:
    """Return the median of the seeds: texts recited, questions answered from memory, and with the text."""
    return [int(median(run[what] for run in runs(forms))) for what in ("recited", "answered", "read")]


def main(names: Sequence[str] = ()) -> None:
    """Train on the named forms, or on all; write what was measured after each of them."""
    start()
    for forms in names or FORMS:
        done, (epochs, times) = read_runs(FILE), FORMS[forms]
        done[forms] = [measure(forms, rate=RATE, epochs=epochs, seed=seed) for seed in range(times)]
        write_runs(FILE, done)


if __name__ == "__main__":
    main(sys.argv[1:])
