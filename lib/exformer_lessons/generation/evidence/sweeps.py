"""Wider sweeps of the evidence on generation: Shakespeare's own words, and words that are no words.

Tiny Shakespeare is fetched, or read from the folder that EXFORMER_DATA names.
"""

import re

import torch

from exformer import beam_search, load_model
from exformer.corpora.real import tiny_shakespeare
from exformer.generation.next_token import Continuation
from exformer.generation.sampling import apply_temperature, greedy, keep_top_k, keep_top_p, sample
from exformer_lessons.trials import sweep


@sweep("C27")
def validation_text(N_NEW, N_PROMPT, costs, repeated):  # noqa: N803
    """Return nats per token and the fraction of repeated pairs, after 400 passages of the validation text."""
    torch.set_num_threads(1)
    model = load_model("shakespeare-bpe")
    ids = model.tokenizer.encode(tiny_shakespeare()[1])
    starts = range(0, len(ids) - N_PROMPT - N_NEW, len(ids) // 401)
    rows = torch.tensor([ids[start : start + N_PROMPT + N_NEW] for start in starts][:400])
    prompts = rows[:, :N_PROMPT]
    limits = {"eos_id": -1, "max_new_tokens": N_NEW}
    rng = torch.Generator().manual_seed(0)
    texts = {
        "Shakespeare": rows[:, N_PROMPT:].tolist(),
        "sampled": sample(Continuation(model.model), prompts, generator=rng, **limits),
        "top-p 0.9": sample(
            Continuation(model.model),
            prompts,
            generator=rng,
            logits_processor=lambda z: keep_top_p(z, 0.9),
            **limits,
        ),
        "greedy": greedy(Continuation(model.model), prompts, **limits),
    }
    for beam in (4, 16):
        found = beam_search(Continuation(model.model), prompts, num_beams=beam, length_penalty=0.0, **limits)
        texts[f"beam {beam}"] = [text.ids for text in found]
    return {
        name: [costs(model.model, prompts, new).mean().item(), repeated(new)] for name, new in texts.items()
    }


@sweep("C28")
def no_words():
    """Return the fraction of words unknown to Shakespeare's text, over 1,600 texts, and its standard error.

    Each text has 47 characters. The prompts are spread over the validation text, and no two overlap.
    """
    torch.set_num_threads(1)
    model = load_model("shakespeare-char")
    old, new = tiny_shakespeare()
    known = set(words_of(old))
    ids = model.tokenizer.encode(new)
    starts = range(0, 1600 * 69, 69)
    prompts = torch.tensor([ids[at : at + 16] for at in starts])
    ways = {
        "as it is": None,
        "T = 0.5": lambda z: apply_temperature(z, 0.5),
        "k = 5": lambda z: keep_top_k(z, 5),
        "p = 0.9": lambda z: keep_top_p(z, 0.9),
    }
    shares = {"Shakespeare": [new[at + 16 : at + 63] for at in starts]}
    for name, change in ways.items():
        rng = torch.Generator().manual_seed(0)
        limits = {"eos_id": -1, "max_new_tokens": 47, "generator": rng, "logits_processor": change}
        shares[name] = [
            model.tokenizer.decode(t)
            for part in prompts.split(400)
            for t in sample(Continuation(model.model), part, **limits)
        ]
    return {name: unknown_share(texts, known) for name, texts in shares.items()}


@sweep("C28")
@torch.no_grad()
def tail(N_NEW, N_PROMPT):  # noqa: N803
    """Return the fraction of tokens that top-p of 0.9 would have cut, and its standard error, over 700 texts.

    The passages are spread over the validation text, and what follows one prompt is in no other passage.
    """
    torch.set_num_threads(1)
    model = load_model("shakespeare-bpe")
    ids = model.tokenizer.encode(tiny_shakespeare()[1])
    starts = range(0, len(ids) - N_PROMPT - N_NEW, (len(ids) - N_PROMPT - N_NEW) // 700)
    rows = torch.tensor([ids[at : at + N_PROMPT + N_NEW] for at in starts][:700])
    prompts = rows[:, :N_PROMPT]
    rng = torch.Generator().manual_seed(0)
    limits = {"eos_id": -1, "max_new_tokens": N_NEW, "generator": rng}
    sampled = [t for part in prompts.split(100) for t in sample(Continuation(model.model), part, **limits)]
    found = {}
    for name, texts in {
        "Shakespeare": rows,
        "sampled": torch.cat([prompts, torch.tensor(sampled)], 1),
    }.items():
        kept = [keep_top_p(model.model(part[:, :-1]), 0.9).isfinite() for part in texts.split(50)]
        used = torch.cat(kept).gather(-1, texts[:, 1:, None]).squeeze(-1)[:, N_PROMPT - 1 :]
        found[name] = share_of([[int(each), N_NEW] for each in (~used).sum(dim=1)])
    return found


def words_of(text):
    """Return the words, in small letters."""
    return re.findall(r"[a-z]+", text.lower())


def unknown_share(texts, known):
    """Return the fraction of unknown words, without each text's first and last, which may be cut."""
    inner = [words_of(text)[1:-1] for text in texts]
    return share_of([[sum(word not in known for word in words), len(words)] for words in inner])


def share_of(counts):
    """Return the fraction over all texts, and its standard error, because the texts are independent."""
    part, whole = map(sum, zip(*counts, strict=True))
    share = part / whole
    return [share, sum((a - share * n) ** 2 for a, n in counts) ** 0.5 / whole]
