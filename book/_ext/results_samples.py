"""The top of the page of results: what the models write, and in four rows how good they are."""

import math
from statistics import mean

from markupsafe import Markup
from results_data import LARGEST, LOSS, mean_loss
from results_tables import counted, missing, power
from templates import macros

HTML = macros("samples.html")
THREADS = {1: "one core", 2: "two cores"}
BLEU = "test BLEU, lower-cased"


def samples(results):
    """Translations, failures and verse, as bench/samples.py wrote them."""
    if "samples" not in results.files:
        return missing("samples", results)
    found = results.files["samples"]
    captions = (
        f"The first {len(found['captions'])} of forty captions that were written for this book, easier than "
        "those of the test set, in both directions, by two models trained on Multi30k."
    )
    failures = (
        "By the same two models, on sentences written to make them fail. What went wrong is our "
        "judgment. The captions that are counted are the 29,000 from which they learned, in the sentence’s "
        "language."
    )
    verse = Markup(
        "By <code>shakespeare-bpe</code>, seed 0, temperature 0.8, top-p 0.95, after “ROMEO:”. All samples "
        "were made by <code>{}</code>."
    ).format(results.asked["commands"]["samples"])
    return Markup("").join(
        (
            HTML.captions(found["captions"], captions),
            HTML.failures(found["failures"], failures),
            HTML.verse(found["shakespeare"]["shakespeare-bpe"], verse),
        )
    )


def summary(results):
    """Four rows that need no other page; a row without its measurement is left out."""
    rows = [row for make in (_agreement, _translation, _shakespeare, _race) if (row := make(results))]
    return HTML.four(rows, counted(results)) if rows else missing("models", results)


def _agreement(results):
    if "agreement" not in results.files:
        return None
    twins = results.files["agreement"]["twins"]
    largest = max(one[LARGEST] for rows in twins.values() for one in rows.values())
    digits = min(10, math.floor(-math.log10(largest)))
    measured = f"To {digits} digits in float64: outputs and gradients differ by at most {power(largest)}."
    models = ", ".join(twins["Hugging Face"])
    beside = f"Compared with {len(twins['PyTorch'])} modules of PyTorch and with Hugging Face’s {models}."
    return ["The same numbers as PyTorch and Hugging Face", measured, beside]


def _translation(results):
    bleu = results.scores("multi30k-en-de", BLEU)
    if not bleu:
        return None
    spread = (
        f" on average over {len(bleu)} trainings ({min(bleu):.2f} to {max(bleu):.2f})" if bleu[1:] else ""
    )
    told = [
        f"Published for the same test set and as small a model: {each['scores'][BLEU]:.2f}, {each['name']}; "
        f"{_standing(bleu, each['scores'][BLEU])}."
        for each in results.asked["published"]
        if each["recipe"] == "multi30k-en-de"
    ]
    if alone := results.scores("multi30k-en-de-alone", BLEU):
        told.append(f"Ours learned from two teachers of its own size; a teacher has {mean(alone):.2f}.")
    return ["Captions from English into German", f"BLEU {mean(bleu):.2f}{spread}.", " ".join(told)]


def _standing(ours, theirs):
    if min(ours) < theirs < max(ours):
        return "that is within the range of our seeds"
    return "ours is better" if mean(ours) > theirs else "ours is worse"


def _shakespeare(results):
    models = [m for m in results.models() if m["recipe"] == "shakespeare-char"]
    if not models:
        return None
    one = models[0]
    minutes = one["training"]["processor_seconds"] / 60
    measured = (
        f"{one['scores'][LOSS]:.2f} nats per character on the validation text, after {minutes:.0f} minutes "
        "of one processor core."
    )
    others = [each for each in results.asked["published"] if each["recipe"] == "shakespeare-char"]
    beside = "; ".join(f"{each['scores'][LOSS]:.2f}, {each['name']}" for each in others)
    return [
        "A language model of Shakespeare’s characters",
        measured,
        f"Published: {beside}. Ours is a single run.",
    ]


def _race(results):
    if "shakespeare" not in results.files:
        return None
    race = results.files["shakespeare"]
    found, peer = race["contenders"], race["contenders"][race["reference"]]
    bound = mean_loss(peer)
    ours = [one for n, one in found.items() if not n.startswith("nanoGPT") and mean_loss(one) <= bound]
    if not ours:
        return None
    best = min(ours, key=lambda one: one["ratio"])
    seconds, theirs = mean(best["seconds"]), mean(peer["seconds"])
    where = THREADS.get(best["threads"], f"{best['threads']} cores")
    measured = f"{seconds:.0f} seconds on {where}, until the loss is that of nanoGPT’s whole training."
    beside = (
        f"nanoGPT, in our reimplementation, takes {theirs:.0f} seconds on the same machine. A step of ours "
        f"takes {best['ms_per_step']:.0f} ms ({best['precision']}), one of nanoGPT’s "
        f"{peer['ms_per_step']:.0f} ({peer['precision']}), but ours needs {best['steps']:,} in place of "
        f"{peer['steps']:,}. It has another optimizer, and learning rates that we chose on this text."
    )
    return ["Training time until the same loss", measured, beside]
