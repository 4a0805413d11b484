"""What the figure of the next token says it has measured is measured here again, with the library."""

import os
import random
import re
from functools import cache
from pathlib import Path
from statistics import fmean

import pytest
import torch

from exformer import load_model
from exformer.corpora.real import tiny_shakespeare
from exformer.generation.beam_search import beam_search
from exformer.generation.next_token import Continuation
from exformer.generation.sampling import keep_top_p
from exformer.nn.loss import nll

# The speeches are of the part of Tiny Shakespeare that the model has not seen: it is not in the repository.
pytestmark = pytest.mark.skipif(
    not (Path(os.environ.get("EXFORMER_DATA", "nowhere")) / "tinyshakespeare" / "input.txt").is_file(),
    reason="no Tiny Shakespeare: EXFORMER_DATA names no folder that has it",
)

LIVE = Path(__file__).parents[3] / "book" / "live"


def said(view):
    """Return the numbers of the sentences that a view shows, in their order."""
    text = re.search(r'static measured = "(.*)";', (LIVE / f"{view}-view.js").read_text())[1]
    return [float(number.replace(",", "")) for number in re.findall(r"\d[\d,]*(?:\.\d+)?(?<!,)", text)]


@cache
def shakespeare():
    model, tokenizer, _ = load_model("shakespeare-bpe")
    begin = tokenizer.bos_id if model.config.begin_id is None else model.config.begin_id
    return model.eval(), tokenizer, begin, tiny_shakespeare()[1]


@torch.no_grad()
def logits_of(rows):
    model, _, begin, _ = shakespeare()
    return model(torch.tensor([[begin, *ids] for ids in rows]))


def losses(rows):
    """Return the losses of the tokens of each text; what pads a row does not change those before."""
    found = []
    for start in range(0, len(rows), 100):
        part = rows[start : start + 100]
        wide = max(map(len, part))
        padded = [[*ids, *[0] * (wide - len(ids))] for ids in part]
        nats = nll(logits_of(padded)[:, :-1], torch.tensor(padded)).tolist()
        found += [each[: len(ids)] for each, ids in zip(nats, part, strict=True)]
    return found


def ids_of(texts):
    return [shakespeare()[1].encode(text) for text in texts]


def passages(length, *, n, seed):
    """Cut passages of so many tokens out of the text that was kept out of the training."""
    _, tokenizer, _, text = shakespeare()
    ids, rng = tokenizer.encode(text), random.Random(seed)
    return [ids[at : at + length] for at in (rng.randrange(len(ids) - 64) for _ in range(n))]


@cache
def speeches():
    _, tokenizer, _, text = shakespeare()
    found = [each for each in text.split("\n\n") if 20 <= len(tokenizer.encode(each)) <= 60]
    return random.Random(0).sample(found, 200)


def shuffled(speech, seed):
    speaker, _, words = speech.partition("\n")
    order = words.split(" ")
    random.Random(seed).shuffle(order)
    return f"{speaker}\n{' '.join(order)}"


def test_loss_of_first_and_later_tokens_of_words():
    _, tokenizer, _, _ = shakespeare()
    first, within = [], []
    rows = ids_of(speeches())
    for ids, costs in zip(rows, losses(rows), strict=True):
        pieces = [tokenizer.decode([each]) for each in ids]
        for before, piece, nats in zip(pieces, pieces[1:], costs[1:], strict=False):
            if piece.strip()[:1].isalpha():
                (within if piece[0].isalpha() and before[-1].isalpha() else first).append(nats)
    n_speeches, costs_first, costs_within = said("loss")[:3]
    assert n_speeches == len(speeches())
    assert [costs_first, costs_within] == pytest.approx([fmean(first), fmean(within)], abs=0.06)
    assert fmean(first) > fmean(within) + 1


def test_shuffled_words_cost_more_in_every_speech():
    straight = [sum(nats) for nats in losses(ids_of(speeches()))]
    mixed = [sum(nats) for nats in losses(ids_of(shuffled(each, n) for n, each in enumerate(speeches())))]
    n_worse, nats_mixed, nats_straight = said("loss")[3:6]
    assert n_worse == sum(a > b for a, b in zip(mixed, straight, strict=True))
    assert [nats_mixed, nats_straight] == pytest.approx([fmean(mixed), fmean(straight)], abs=0.6)


def test_the_two_lines_are_read_and_unread():
    view = (LIVE / "loss-view.js").read_text(encoding="utf-8")
    first, read = (
        re.search(rf'const {name} = "(.*?)";', view)[1].replace("\\n", "\n") for name in ("START", "READ")
    )
    text = tiny_shakespeare()
    assert read.split("\n")[1] in text[0]
    assert first in text[1]
    assert first.split("\n")[1] not in text[0]


def test_number_of_tokens_that_top_p_keeps():
    rows = passages(63, n=300, seed=0)
    logits = logits_of(rows)[:, 8:-1].flatten(end_dim=1)  # after at least eight tokens of the passage
    true = torch.tensor(rows)[:, 8:].flatten()
    kept = keep_top_p(logits, 0.9).isfinite()
    n_kept = kept.sum(dim=-1).float()
    ranks = (logits > logits.gather(-1, true[:, None])).sum(dim=-1)
    n_positions, _, mean, least, most, k, lost = said("sample")
    assert n_positions == len(true)
    assert k == 40
    found = [n_kept.mean().item(), n_kept.min().item(), n_kept.max().item()]
    assert [mean, least, most] == pytest.approx(found, abs=1)
    assert lost == pytest.approx(100 * (ranks >= k).float().mean().item(), abs=1)


def test_beam_search_beside_greedy():
    model, tokenizer, begin, _ = shakespeare()
    prompts = torch.tensor([[begin, *ids] for ids in passages(12, n=200, seed=1)])

    def found(beam):
        how = {"eos_id": tokenizer.eos_id, "max_new_tokens": 5, "length_penalty": 0.0}
        texts = beam_search(Continuation(model), prompts, num_beams=beam, **how)
        return torch.tensor([text.log_probability for text in texts])

    gain = found(3) - found(1)
    n_prompts, beam, more, same, less, median = said("beam")
    shares = [each.float().mean().item() for each in (gain > 1e-3, gain.abs() <= 1e-3, gain < -1e-3)]
    assert (n_prompts, beam) == (len(prompts), 3)
    assert [more, same, less] == pytest.approx([100 * share for share in shares], abs=2)
    assert median == pytest.approx(gain[gain > 1e-3].median().item(), abs=0.1)
