"""What the lesson tabulates of fine-tuning and of a threshold, in five trainings each."""

import torch

from exformer_lessons.trials import sweep

SIZES = (16, 64, 256, 1024, 4096)


@sweep("C29")
def fine_tuned(
    accuracy, batches, fine_tune, learn, masked_loss, new_decoder, new_encoder, next_word_loss, rng, ways
):
    """Return the accuracy of tags and of classes after fine-tuning, for each model and seed.

    The labeled sentences are the same for all. A seed gives the weights, the batches of pretraining and of
    fine-tuning. An encoder from scratch has that of three learning rates which is best on the test sentences.
    """
    found = {name: {task: [] for task in ways[name]} for name in ways}
    for seed in range(5):
        rng.manual_seed(seed)
        decoder = learn(new_decoder(seed), batches(seed), next_word_loss)
        bodies = {
            "encoder": learn(new_encoder(seed), batches(seed), masked_loss),
            "encoder from scratch": new_encoder(seed),
            "decoder": decoder,
            "decoder, mask removed": decoder,
        }
        for name, body in bodies.items():
            rates = (1e-3, 3e-3, 9e-3) if name == "encoder from scratch" else (3e-3,)
            for task, states_of in ways[name].items():
                models = [fine_tune(body, task, states_of, seed, rate) for rate in rates]
                found[name][task].append(max(accuracy(model, task) for model in models))
    return found


@sweep("C29")
def threshold(
    batches,
    best_threshold,
    ids_of,
    judged,
    least_likely,
    least_likely_of_both,
    learn,
    masked_loss,
    new_decoder,
    new_encoder,
    next_word_loss,
    rng,
):
    """Return the accuracy of one threshold on the smallest log-probability of a word, by labels and seed.

    The labels choose the threshold and nothing else. The decoder gives each word its probability after the
    words before it; the encoder, with the word hidden, in a pass per word.
    """

    def told(found):
        return ids_of([each.sentence for each in found]), torch.tensor([each.right for each in found])

    found = {name: {str(n): [] for n in SIZES} for name in ("decoder", "encoder")}
    for seed in range(5):
        rng.manual_seed(seed)
        scores = {
            "decoder": (least_likely, learn(new_decoder(seed), batches(seed), next_word_loss)),
            "encoder": (least_likely_of_both, learn(new_encoder(seed), batches(seed), masked_loss)),
        }
        pool = judged(max(SIZES), 500 + seed)
        new = judged(500, 600 + seed, without={each.original for each in pool})
        (ids, right), (new_ids, new_right) = told(pool), told(new)
        for name, (score, model) in scores.items():
            known, unknown = score(model, ids), score(model, new_ids)
            for n in SIZES:
                least = best_threshold(known[:n], right[:n])
                found[name][str(n)].append(((unknown > least) == new_right).float().mean().item())
    return found
