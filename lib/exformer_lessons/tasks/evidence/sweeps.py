"""Wider sweeps of the evidence on summarization: a decoder alone that translates, its budgets and lengths."""

from exformer_lessons.trials import sweep

SEEDS = range(3)


@sweep("C19")
def budgets(DecoderAlone, both_parts, data, learn, share_right):  # noqa: N803
    """Return the fraction of right translations of both models, for each seed, by steps and by pairs."""
    found = {}
    for steps, pairs in ((400, 20_000), (800, 1_000)):
        found[f"{steps} steps, {pairs:,} pairs"] = {
            name: [
                share_right(learn(new, data.train[:pairs], steps=steps, seed=seed), data.test)
                for seed in SEEDS
            ]
            for name, new in (("alone", DecoderAlone), ("both", both_parts))
        }
    return found


@sweep("C19")
def longer(DecoderAlone, both_parts, data, learn, share_right):  # noqa: N803
    """Return the fraction of right translations of sentences longer than all in training, for each seed."""
    kinds = {
        is_long: [p for p in data.test if (len(p.source.split()) > 8) is is_long] for is_long in (False, True)
    }
    train = [p for p in data.train if len(p.source.split()) <= 8]
    found = {}
    for name, new in (("alone", DecoderAlone), ("both", both_parts)):
        models = [learn(new, train, seed=seed) for seed in SEEDS]
        found[name] = {
            "up to 8 words": [share_right(model, kinds[False]) for model in models],
            "more": [share_right(model, kinds[True]) for model in models],
        }
    return found
