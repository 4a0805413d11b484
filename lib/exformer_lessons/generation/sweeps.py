"""A wider sweep of the lesson on generation: beam search on 200 real captions.

They are the first of the test set. Their terms keep them out of the book: they are fetched, or read from
the folder of EXFORMER_DATA.
"""

import torch

from exformer import beam_search, corpus_bleu, load_model, pad
from exformer.corpora.real import multi30k
from exformer.generation.next_token import Continuation
from exformer.nn.loss import nll
from exformer_lessons.trials import sweep

WIDTHS = (1, 2, 5, 10, 30)


def n_words(texts):
    """Count the words of all texts together."""
    return len(" ".join(texts).split())


@torch.no_grad()
def translations(translator, texts, width, alpha):
    """Translate by beam search, fifty captions at a time."""
    source, target = translator.tokenizer
    found = []
    for start in range(0, len(texts), 50):
        rows = [[*source.encode(text), source.eos_id] for text in texts[start : start + 50]]
        score = Continuation(translator.model, src=pad(rows, pad_id=source.pad_id))
        first = torch.full((len(rows), 1), target.bos_id)
        limits = {"eos_id": target.eos_id, "max_new_tokens": 60}
        found += beam_search(score, first, num_beams=width, length_penalty=alpha, **limits)
    return found


@torch.no_grad()
def nats_of_references(translator, pairs):
    """Return the mean negative log-likelihood per token of the human translations."""
    source, target = translator.tokenizer
    total, n = 0.0, 0
    for pair in pairs:
        src = torch.tensor([[*source.encode(pair.source), source.eos_id]])
        tgt = torch.tensor([[target.bos_id, *target.encode(pair.target), target.eos_id]])
        nats = nll(translator.model(src, tgt[:, :-1]), tgt[:, 1:])
        total, n = total + nats.sum().item(), n + nats.numel()
    return total / n


@sweep("C26")
def captions():
    """Return log-probability, length, BLEU and the number of empty translations, by length penalty and width.

    ``best`` counts the captions for which a width finds the most probable translation that any width found.
    """
    torch.set_num_threads(1)
    translator = load_model("multi30k-en-de")
    pairs = multi30k("test", src="en", tgt="de")[:200]
    source, right = ([getattr(pair, side) for pair in pairs] for side in ("source", "target"))
    figures = {"captions": len(pairs), "nats of references": nats_of_references(translator, pairs)}
    for alpha in (0.0, 1.0):
        found = {width: translations(translator, source, width, alpha) for width in WIDTHS}
        log_ps = {width: [text.log_probability for text in texts] for width, texts in found.items()}
        best = [max(each) for each in zip(*log_ps.values(), strict=True)]
        figures[f"{alpha:g}"] = {}
        for width, texts in found.items():
            made = [translator.tokenizer[1].decode(text.ids) for text in texts]
            kept = [i for i, text in enumerate(made) if text]
            figures[f"{alpha:g}"][str(width)] = {
                "log_p": sum(log_ps[width]) / len(pairs),
                "nats": -sum(log_ps[width]) / sum(len(text.ids) + 1 for text in texts),
                "best": sum(a - b < 1e-3 for a, b in zip(best, log_ps[width], strict=True)),
                "length": n_words(made) / n_words(right),
                "length of others": n_words(made[i] for i in kept) / n_words(right[i] for i in kept),
                "empty": len(made) - len(kept),
                "bleu": corpus_bleu(made, right),
            }
    return figures
