"""The top of the page of results: what the models write, and five sentences on how good they are."""

from statistics import mean

from markupsafe import Markup
from results_data import LOSS, mean_loss
from results_tables import missing, verdicts
from templates import macros

HTML = macros("samples.html")
BLEU = "test BLEU, lower-cased"


def samples(results):
    """Translations, verse and a masked sentence, as bench/samples.py wrote them."""
    if "samples" not in results.files:
        return missing("samples", results)
    found = results.files["samples"]
    made = Markup("<code>{}</code>").format(results.asked["commands"]["samples"])
    captions = Markup(
        "The first {} of forty captions that were written for this book, easier than those of the test set, "
        "by the two translators of Multi30k; and the first of the longest test sentences of lesson 02, by "
        "its translator with attention. Made by {}."
    ).format(len(found["captions"]), made)
    failures = Markup(
        "By the same two translators, on sentences written to make them fail. The captions that are counted "
        "are the 29,000 from which they learned, in the language of the sentence. Made by {}."
    ).format(made)
    verse = Markup(
        "By <code>shakespeare-bpe</code>, seed 0, temperature 0.8, top-p 0.95, after “ROMEO:”. Made by {}."
    ).format(made)
    masked = Markup(
        "A masked language model of {:,} parameters, trained for {:,} steps "
        "on the book’s English grammar, reads the sentence once for each word, with that word hidden. In "
        "bold the word that was there. Made by {}."
    ).format(found["masked"]["parameters"], found["masked"]["steps"], made)
    return Markup("").join(
        (
            HTML.captions(found["captions"], found["italian"], captions),
            HTML.failures(found["failures"], failures),
            HTML.verse(found["shakespeare"]["shakespeare-bpe"], verse),
            HTML.masked(found["masked"]["sentence"], found["masked"]["filled"], masked),
        )
    )


def summary(results):
    """Five sentences about measurements; a sentence without its measurement is left out."""
    sentences = [make(results) for make in (_translation, _shakespeare, _race, _steps, _page)]
    return (
        HTML.summary(kept) if (kept := [text for text in sentences if text]) else missing("models", results)
    )


def _translation(results):
    bleu = results.scores("multi30k-en-de", BLEU)
    others = [each for each in results.asked["published"] if each["recipe"] == "multi30k-en-de"]
    if not bleu:
        return ""
    beside = " and ".join(f"{each['scores'][BLEU]:.2f} ({each['name']})" for each in others)
    missed = ", which ours misses" if mean(bleu) < max(each["scores"][BLEU] for each in others) else ""
    return (
        f"English captions into German: BLEU {mean(bleu):.2f} on average over {len(bleu)} trainings "
        f"({min(bleu):.2f} to {max(bleu):.2f}), with two million parameters and nothing but the "
        f"training captions. Published for the same test set and size: {beside}{missed}."
    )


def _shakespeare(results):
    models = [m for m in results.models() if m["recipe"] == "shakespeare-char"]
    if not models:
        return ""
    one = models[0]
    return (
        f"Shakespeare by characters: {one['scores'][LOSS]:.2f} nats per character after "
        f"{one['training']['processor_seconds'] / 60:.0f} minutes of one processor core. nanoGPT reports "
        "1.88 for its recipe for a laptop, and 1.47 for a model with thirteen times the parameters on a GPU."
    )


def _race(results):
    if "shakespeare" not in results.files:
        return ""
    race = results.files["shakespeare"]
    found, peer = race["contenders"], race["contenders"][race["reference"]]
    bound = mean_loss(peer)
    ours = {n: one for n, one in found.items() if not n.startswith("nanoGPT") and mean_loss(one) <= bound}
    if not ours:
        return ""
    name, best = min(ours.items(), key=lambda item: item[1]["ratio"])
    aim = verdicts(results).get(("shakespeare", name))
    asked = f"; target: {aim.asked_words.removesuffix(' as fast')}" if aim else ""
    asked += ", missed" if aim and not aim.met else ""
    return (
        f"Our recipe reaches the loss of nanoGPT’s recipe for a laptop {1 / best['ratio']:.1f} times as fast "
        f"(in {best['precision']}{asked}). Its steps take {best['ms_per_step']:.0f} ms, nanoGPT’s "
        f"{peer['ms_per_step']:.0f}, but it needs {peer['steps'] / best['steps']:.0f} times fewer of them."
    )


def _steps(results):
    if "bench" not in results.files:
        return ""
    ratios = [race["ratio_to_best_peer"] for race in results.files["bench"]["races"]]
    return (
        f"A training step takes {min(ratios):.2f} to {max(ratios):.2f} of the time of the fastest peer, over "
        f"{len(ratios)} settings: PyTorch’s own modules, x-transformers, and models of Hugging Face, also "
        "with a faster activation than their own, for which no target was set."
    )


def _page(results):
    if "live" not in results.files:
        return ""
    found = results.files["live"]
    caption = found["beside the library, one thread"]["a caption"]
    return (
        f"In a browser a caption is translated in {caption['page ms']:.0f} ms; the same model in PyTorch, on "
        f"one thread of the same machine, takes {caption['library ms']:.0f} ms."
    )
