"""Wider sweeps of the masked language model: how many labels pretraining saves, and tags at other rates."""

import torch

from exformer.corpora import english
from exformer.models.classification import ClassHead
from exformer_lessons.trials import sweep

SEEDS = range(3)
LONGER = 1600


def halves(n, seed, without):
    """Return labeled sentences, half of them right, without those whose right form is known."""
    found = [
        each
        for each in english.judged_sample(3 * n, seed=seed)
        if each.original not in without and len(each.original.split()) <= 10
    ]
    kinds = ([each for each in found if each.right is right] for right in (True, False))
    return [each for pair in zip(*kinds, strict=False) for each in pair][:n]


@sweep("C29")
def labels(class_accuracy, fill_gaps, fine_tune, ids, ids_of, masking, new_encoder, rates, seen):
    """Return the accuracy of the classes by the number of labels, with pretraining and without.

    Each seed has its own weights, pretraining batches, labeled sentences and test sentences. No test sentence
    has the right form of a labeled one. The encoder without pretraining takes 1,600 steps, at that of three
    learning rates that is best on the test sentences.
    """

    def told(found):
        return ids_of([each.sentence for each in found]), torch.tensor([int(each.right) for each in found])

    rows = (
        "pretrained, 50 steps",
        "pretrained, 1,600 steps",
        "from scratch, 1,600 steps",
        "on its own labels",
    )
    sizes = (16, 64, 256, 1024, 4096)
    accuracies = {name: {str(n): [] for n in sizes} for name in rows}
    for seed in range(5):
        pretrained = fill_gaps(new_encoder(seed), ids, masking, seed)
        pool = halves(max(sizes), 500 + seed, seen)
        test = told(halves(500, 600 + seed, seen | {each.original for each in pool}))
        for n in sizes:
            own = told(pool[:n])

            def tuned(body, steps, peak=3e-3, own=own):
                head = ClassHead(48, n_classes=2, dropout=0.0)
                return fine_tune(body, head, *own, steps=steps, peak=peak)

            scratch = [tuned(new_encoder(seed), LONGER, rate) for rate in rates]
            best = max(scratch, key=lambda model: class_accuracy(model, *test))
            models = (tuned(pretrained, 50), tuned(pretrained, LONGER), best)
            for name, model in zip(rows, models, strict=False):
                accuracies[name][str(n)].append(class_accuracy(model, *test))
            accuracies[rows[-1]][str(n)].append(class_accuracy(best, *own))
    return accuracies


@sweep("C29")
def minimal_pairs(class_accuracy, fine_tune, ids_of, new_encoder, rates, seen):
    """Return the accuracy of the classes learned from 128 pairs without pretraining, for each seed.

    A pair is a wrong sentence and its right form. Steps, learning rates and test sentences are those of the
    sweep of labels.
    """

    def tuned(seed, sentences, right, peak):
        head = ClassHead(48, n_classes=2, dropout=0.0)
        return fine_tune(new_encoder(seed), head, sentences, right, steps=LONGER, peak=peak)

    accuracies = []
    for seed in SEEDS:
        pool = halves(4096, 500 + seed, seen)
        wrong = [each for each in pool if not each.right][:128]
        pairs = ids_of([text for each in wrong for text in (each.original, each.sentence)])
        right = torch.tensor([1, 0]).repeat(len(wrong))
        found = halves(500, 600 + seed, seen | {each.original for each in pool})
        test = ids_of([each.sentence for each in found]), torch.tensor([int(each.right) for each in found])
        models = [tuned(seed, pairs, right, rate) for rate in rates]
        accuracies.append(max(class_accuracy(model, *test) for model in models))
    return accuracies


@sweep("C29")
def two_gaps(fill_gaps, ids, ids_of, masking, new_encoder, tokenizer):
    """Return how often a noun and its verb agree if both are masked, by seed, sampled at once and one by one.

    The sentences are those of the lesson: *the … near the door … tired*, and others like it.
    """

    def words_of(*names):
        return tokenizer.encode(" ".join(word for name in names for word in english.lexicon.CLASSES[name]))

    things = [*english.lexicon.CLASSES["NOUN.thing.singular"], *english.lexicon.CLASSES["NOUN.thing.plural"]]
    text = ids_of(
        [
            f"the dogs {where} the {thing} are {how}"
            for where in english.lexicon.CLASSES["PREPOSITION"]
            for thing in things
            for how in english.lexicon.CLASSES["QUALITY.living"]
        ]
    )
    text[:, [2, 6]] = masking.mask_id
    found = {"at once": [], "one by one": []}
    for seed in range(5):
        model = fill_gaps(new_encoder(seed), ids, masking, seed).requires_grad_(False)
        p_noun, p_verb = model(text).softmax(dim=-1)[:, [2, 6]].unbind(dim=1)
        at_once = one_by_one = 0.0
        for number in ("singular", "plural"):
            verbs = words_of(f"BE.{number}")
            for noun in words_of(*(f"NOUN.{kind}.{number}" for kind in ("man", "woman", "animal"))):
                known = text.clone()
                known[:, 2] = noun
                p_after = model(known).softmax(dim=-1)[:, 6]
                at_once += p_noun[:, noun] * p_verb[:, verbs].sum(dim=-1)
                one_by_one += p_noun[:, noun] * p_after[:, verbs].sum(dim=-1)
        found["at once"].append(at_once.mean().item())
        found["one by one"].append(one_by_one.mean().item())
    return found


@sweep("C29")
def threshold(
    batches, best_threshold, fill_gaps, ids, ids_of, learn, least_likely, least_likely_of_both, masking,
    new_decoder, new_encoder, next_word_loss, seen
):  # fmt: skip
    """Return the accuracy of one threshold on the smallest log-probability of a word, by labels and seed.

    The labels choose the threshold and nothing else. The decoder gives each word its probability after the
    words before it; the encoder, with the word hidden, in a pass per word.
    """

    def told(found):
        return ids_of([each.sentence for each in found]), torch.tensor([each.right for each in found])

    sizes = (16, 64, 256, 1024, 4096)
    found = {name: {str(n): [] for n in sizes} for name in ("decoder", "encoder")}
    for seed in range(5):
        decoder = learn(new_decoder(seed), batches(ids, seed), next_word_loss)
        encoder = fill_gaps(new_encoder(seed), ids, masking, seed)
        pool = halves(max(sizes), 500 + seed, seen)
        new = told(halves(500, 600 + seed, seen | {each.original for each in pool}))
        known = told(pool)
        for name, score in (("decoder", least_likely), ("encoder", least_likely_of_both)):
            model = decoder if name == "decoder" else encoder
            scores, new_scores = score(model, known[0]), score(model, new[0])
            for n in sizes:
                least = best_threshold(scores[:n], known[1][:n])
                found[name][str(n)].append(((new_scores > least) == new[1]).float().mean().item())
    return found
