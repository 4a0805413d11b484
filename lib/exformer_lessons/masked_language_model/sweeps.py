"""What the lesson tabulates of fine-tuning, in five trainings."""

from exformer_lessons.trials import sweep


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
