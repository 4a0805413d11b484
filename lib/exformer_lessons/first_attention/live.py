"""Recurrence against attention: a sentence between the translations of lesson 02's two translators."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from exformer.corpora.english_italian.grammar import derive
from exformer.corpora.english_italian.parser import parse
from exformer.data.translation import encode_pairs
from exformer.generation.translate import translate
from exformer.nn.record_attention import record_attention
from exformer_lessons.checkpoints import load_lesson_model
from exformer_lessons.diagrams import Diagram, Shape, arrow, column, draw, label, links, matrix, row, tokens
from exformer_lessons.live.figure import Live

ONE_VECTOR, ATTENTION = "two-translators-one-vector", "two-translators-attention"
#: What the figure begins with: the first sentence of the lesson.
FIRST = "many cats didn't find the hungry foxes beyond many sunny lakes"


def still() -> Diagram:
    """Draw the first state: the sentence in the middle, C's translation on the left and D's on the right."""
    pair = derive(parse(FIRST))
    a, b = load_lesson_model(ONE_VECTOR), load_lesson_model(ATTENTION)
    left = Counter(pair.target.split())
    written = str(translate(a.model, a.tokenizer, FIRST, max_new_tokens=18)).split()
    roles = []
    for word in written:
        roles.append("plain" if left[word] else "low")
        left[word] -= 1
    batch, _ = encode_pairs([pair], src_tokenizer=b.tokenizer[0], tgt_tokenizer=b.tokenizer[1])
    with torch.no_grad(), record_attention(b.model) as seen:
        b.model(batch.src, batch.tgt_in)
    target = str(translate(b.model, b.tokenizer, FIRST, max_new_tokens=18)).split()
    weights = seen["attention"][0, : len(target)]  # (tgt, src), the end token included
    last, _ = encode_pairs([pair], src_tokenizer=a.tokenizer[0], tgt_tokenizer=a.tokenizer[1])
    with torch.no_grad():
        encode: Any = a.model.encode
        state = encode(last.src)[0, -1]  # after the end token
    english = _upright([*FIRST.split(), "</s>"], ["encoder"] * 12)
    by_a, by_b = (
        _upright(written, roles, align="right"),
        _upright(target, ["plain"] * len(target), align="left"),
    )
    vector = matrix(state[:, None].round(decimals=1), numbers=False, cell=(13, 13), limits=(-1, 1))
    left_half = row(by_a, vector, gap=22, align="top")
    return draw(
        row(
            label(left_half, above="C, one vector"),
            label(english, above="English"),
            label(by_b, above="D, attention"),
            gap=32,
            align="top",
        ),
        links(by_b, english, weights.round(decimals=2), role="high", least=0.08),
        arrow(english[11].left, vector.bottom, route="elbow", role="low"),
        arrow(vector[0, 0].left, by_a[0].right, role="low"),
    )


def _upright(words: Sequence[str], roles: Sequence[str], *, align: str = "axis") -> Shape:
    boxes = [tokens([word], role=role, size=13) for word, role in zip(words, roles, strict=True)]
    return replace(column(*boxes, gap=5, align=align), parts=dict(enumerate(boxes)))


FIGURE = Live(
    name="recurrence",
    still=still,
    models=(ONE_VECTOR, ATTENTION),
    alt=(
        "An English sentence of eleven words in the middle. On the left its translation by C, which "
        "gets it as one vector of 16 numbers: its first six words are right, and of the other five none "
        "is in the right translation. On the right its translation by D, without a mistake, with "
        "lines from each word to the English words that it attends to."
    ),
    caption=(
        "C and D are A and B with states of 16 numbers. All that C's decoder gets is the encoder's last "
        "state; D's attends to the states after all words (lines: weights of 8% or more). While the "
        "figure runs, dashed words are wrong, judged by the grammar, and underlined ones have changed "
        "with yours. Replace a noun of a 12-word sentence by another of the same gender, and in D's "
        "translation only that noun changes, with its article where it must. C's stays the same, word for "
        "word, in 30% of 1,000 sentences if it was the first noun, in 59% if the second, and in 65% if the "
        "third. Of sentences of three words C gets about half right. Curves: 100 test sentences of each "
        "length; thin lines are other seeds, which also draw other sentences."
    ),
)
