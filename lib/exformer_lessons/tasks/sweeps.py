"""Wider sweeps of summarization: a model from scratch at other rates, and all measures at other rates."""

import copy

from exformer import DecoderLM
from exformer.evaluation.metrics import exact_match, rouge
from exformer.training.loop import set_seed
from exformer_lessons.trials import sweep


@sweep("C31")
def from_scratch(adapt, ask, config, data):
    """Return how often a model from scratch, with 16 labels, names the right person in new articles."""
    found = {}
    for steps, rate in ((240, 1.25e-3), (240, 5e-3), (240, 2e-2), (960, 5e-3)):
        set_seed(1)
        model = adapt(DecoderLM(config), data.train[:16], steps=steps, peak=rate)
        named = exact_match(ask(model, "who?"), [r.facts.person for r in data.test])
        found[f"{steps} steps, rate {rate}"] = named
    return found


@sweep("C31")
def by_rate(adapt, articles, ask, config, count_verdicts, data, read_texts, repeated, withheld, BATCH):  # noqa: N803
    """Return ROUGE-L and the fraction of right verbs at other learning rates of all trainings."""
    found = {}
    for times in (1 / 3, 3):

        def tuned(model, times=times):
            adapted = adapt(model, data.train[:256], plain=articles, peak=4e-3 * times)
            texts = ask(adapted, "TL;DR:")
            verbs = count_verdicts(texts)["verb"]["right"] / 100
            return rouge(texts, [r.summary for r in data.test])["rougeL"], verbs

        set_seed(0)
        base = DecoderLM(config)
        read_texts(base, articles, size=BATCH, peak=5e-3 * times)
        row = dict(zip(("ROUGE-L", "as it was"), tuned(base), strict=True))
        for name, texts in {"verb repeated": repeated, "did instead": withheld}.items():
            reader = copy.deepcopy(base)
            read_texts(reader, texts, size=16, peak=6e-3 * times)
            row[name] = tuned(reader)[1]
        found[f"{times:.2g}"] = row
    return found
