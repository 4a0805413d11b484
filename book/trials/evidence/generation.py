"""Wider sweeps of the evidence on generation: Shakespeare's own words, and words that are no words.

Tiny Shakespeare is fetched, or read from the folder that EXFORMER_DATA names.
"""

import re

import torch

from exformer import beam_search, load_model
from exformer.corpora.real import tiny_shakespeare
from exformer.generation.decoding import greedy
from exformer.generation.logits import apply_temperature, keep_top_k, keep_top_p
from exformer.generation.next_token import Continuation
from exformer.generation.sampling import sample
from exformer.lessons.trials import sweep


@sweep("C27")
def validation_text(N_NEW, N_PROMPT, costs, repeated):  # noqa: N803
    """Give nats per token and the share of repeated pairs, after 400 passages of the validation text."""
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
            Continuation(model.model), prompts, generator=rng, change=lambda z: keep_top_p(z, 0.9), **limits
        ),
        "greedy": greedy(Continuation(model.model), prompts, **limits),
    }
    for beam in (4, 16):
        found = beam_search(Continuation(model.model), prompts, beam=beam, alpha=0.0, **limits)
        texts[f"beam {beam}"] = [text.ids for text in found]
    return {
        name: [costs(model.model, prompts, new).mean().item(), repeated(new)] for name, new in texts.items()
    }


@sweep("C28")
def no_words():
    """Give the share of words that Shakespeare's text does not have, of 400 texts of 47 characters each."""
    torch.set_num_threads(1)
    model = load_model("shakespeare-char")
    old, new = tiny_shakespeare()
    known = set(words_of(old))
    ids = model.tokenizer.encode(new)
    prompts = torch.tensor([ids[i * 270 : i * 270 + 16] for i in range(400)])
    ways = {
        "as it is": None,
        "T = 0.5": lambda z: apply_temperature(z, 0.5),
        "k = 5": lambda z: keep_top_k(z, 5),
        "p = 0.9": lambda z: keep_top_p(z, 0.9),
    }
    shares = {"Shakespeare": [new[i * 270 + 16 : i * 270 + 63] for i in range(400)]}
    for name, change in ways.items():
        rng = torch.Generator().manual_seed(0)
        limits = {"eos_id": -1, "max_new_tokens": 47, "generator": rng, "change": change}
        shares[name] = [
            model.tokenizer.decode(t) for t in sample(Continuation(model.model), prompts, **limits)
        ]
    return {name: unknown_share(texts, known) for name, texts in shares.items()}


def words_of(text):
    """Return the words, in small letters."""
    return re.findall(r"[a-z]+", text.lower())


def unknown_share(texts, known):
    """Return the share of words that are not known, without each text's first and last, which may be cut."""
    found = [word for text in texts for word in words_of(text)[1:-1]]
    return sum(word not in known for word in found) / len(found)
