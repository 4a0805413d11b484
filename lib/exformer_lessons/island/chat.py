"""SmolLM2 in the form in which it was trained to talk: prompts, greedy answers, and the loss on answers."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from exformer import DecoderLM, cross_entropy, pad
from exformer.data.padding import pad_left
from exformer.generation.next_token import Continuation
from exformer.generation.sampling import greedy
from exformer.tokenizers.tokenizer import Tokenizer

START, END = 1, 2  # the ids of <|im_start|> and <|im_end|>
SHORT = "Answer in one short sentence."
FROM_TEXT = "Answer in one short sentence, from the text alone."


class Row(NamedTuple):
    """A text for training: its ids, and the position of the first one that is a target."""

    ids: list[int]
    first: int


class Chat:
    """A decoder with its tokenizer, asked in the form in which it was trained to answer.

    Args:
        decoder: SmolLM2.
        tokens: Its tokenizer.
    """

    def __init__(self, decoder: DecoderLM, tokens: Tokenizer) -> None:
        self.decoder, self.tokens = decoder, tokens

    def _turn(self, role: str, said: str) -> list[int]:
        return [START, *self.tokens.encode(f"{role}\n{said}"), END, *self.tokens.encode("\n")]

    def prompt(self, asked: str, system: str) -> list[int]:
        """Return the ids of a conversation, up to where the assistant begins to speak."""
        begun = [START, *self.tokens.encode("assistant\n")]
        return [*self._turn("system", system), *self._turn("user", asked), *begun]

    def answers(self, asked: Sequence[str], system: str = SHORT) -> list[str]:
        """Return greedy answers of at most 40 tokens."""
        rows = self.go_on([self.prompt(each, system) for each in asked], max_new_tokens=40)
        return [self.tokens.decode(row).strip() for row in rows]

    @torch.no_grad()
    def go_on(self, prompts: Sequence[list[int]], *, max_new_tokens: int) -> list[list[int]]:
        """Return the ids that the model generates after each prompt, greedily."""
        self.decoder.eval()
        next_token = Continuation(self.decoder, pad_id=END)
        padded = pad_left(prompts, pad_id=END)
        return greedy(next_token, padded, eos_id=END, max_new_tokens=max_new_tokens)

    def text_row(self, text: str) -> Row:
        """Return a text for training, each of whose tokens is a target."""
        return Row([END, *self.tokens.encode(text), END], 1)

    def answer_row(self, asked: str, answer: str, system: str = SHORT) -> Row:
        """Return a conversation for training, in which the tokens of the answer are the targets."""
        prompt = self.prompt(asked, system)
        return Row([*prompt, *self.tokens.encode(answer), END], len(prompt))


def loss_on_targets(decoder: DecoderLM, rows: Sequence[Row]) -> Tensor:
    """Return the mean negative log-likelihood of the targets of some rows, in nats per token."""
    ids = pad([row.ids for row in rows], pad_id=END)
    targets = torch.full_like(ids, -100)  # not counted
    for target, row in zip(targets, rows, strict=True):
        target[row.first : len(row.ids)] = torch.tensor(row.ids[row.first :])
    return cross_entropy(decoder(ids[:, :-1]), targets[:, 1:])
