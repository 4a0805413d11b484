"""Wider sweeps of the evidence on tasks as text: what was in the training text, and how many labels."""

import copy

from exformer import DecoderLM
from exformer.evaluation.metrics import exact_match, rouge
from exformer.training.loop import set_seed
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


@sweep("D11")
def shares(read_once, texts_of, verdicts_of):
    """Return, for each seed, how many summaries have the form and right facts, by the share with TL;DR."""
    return {
        str(share): [verdicts_of(read_once(texts_of(share), seed)) for seed in SEEDS]
        for share in (0, 0.001, 0.01)
    }


@sweep("D11")
def verbs(read_once, texts_of, verdicts_of):
    """Return the same where a quote repeats the verb or says *did*, and with more articles."""
    found = {
        "as they are": [verdicts_of(read_once(texts_of(0.1), seed)) for seed in range(5)],
        "verb repeated": [verdicts_of(read_once(texts_of(0.1, quote="verb"), seed)) for seed in range(5)],
        "did": [verdicts_of(read_once(texts_of(0.1, quote="did"), seed)) for seed in range(5)],
    }
    return found | {
        "four times": [verdicts_of(read_once(texts_of(0.1, n=32_000), seed)) for seed in range(2)]
    }


@sweep("D11")
def examples(in_context, lists_of, read_once, texts_of):
    """Return, for each seed, the right answers by kind and number of examples, after lists of two sorts."""
    found = {"same": [], "mixed": []}
    for seed in SEEDS:
        base = read_once(texts_of(0.1), seed)
        for way, runs in found.items():
            model = read_once(lists_of(2400, way == "same"), model=copy.deepcopy(base), peak=6e-3)
            kinds = ("where", "when", "what", "who")
            runs.append({kind: [in_context(model, kind, n) for n in range(5)] for kind in kinds})
    return found


@sweep("D11")
def labels(adapt, config, named, read_once, tests, texts_of):
    """Return, for each seed, the right persons by number of labels, pretrained and from scratch."""
    texts, found = texts_of(0.1), {"pretrained": {}, "from scratch": {}}
    for seed in SEEDS:
        base = read_once(texts, seed)
        set_seed(seed + 1)
        new = DecoderLM(config)
        for n in (4, 16, 64, 256):
            tuned = named(adapt(base, n, replay=texts), tests)
            found["pretrained"].setdefault(str(n), []).append(tuned)
            tries = [named(adapt(new, n, peak=peak), tests) for peak in (2.5e-3, 5e-3)]
            found["from scratch"].setdefault(str(n), []).append(max(tries))
    return found


@sweep("D11")
def without_summaries(
    Random,  # noqa: N803
    adapt,
    batch_of,
    config,
    fit,
    named,
    read_once,
    reports,
    tests,
    texts_of,
    tok,
    write,
):
    """Return the right answers of a model that has read articles only, by task and number of labels.

    The first task is *who?*. The second answers with one of two label words whether this person has a woman's
    first name, which is every other one in their alphabetical order; a model from scratch does it as well.
    """
    women = {
        name for n, name in enumerate(sorted({r.facts.person.split()[0] for r in reports})) if n % 2 == 0
    }
    label_of = {
        report: "did" if report.facts.person.split()[0] in women else "not" for report in reports + tests
    }

    def labeled(report):
        prompt, answer = tok.encode(f"{report.article} =>"), [*tok.encode(label_of[report]), tok.eos_id]
        return [tok.bos_id, *prompt, *answer[:-1]], [tok.pad_id] * len(prompt) + answer

    def tuned(model, n, peak=4e-3):
        rng = Random(0)
        batches = [batch_of([labeled(rng.choice(reports[:n])) for _ in range(8)]) for _ in range(400)]
        model = fit(copy.deepcopy(model), batches, peak)
        texts = write(model, [f"{report.article} =>" for report in tests], limit=2)
        return sum(text == label_of[report] for text, report in zip(texts, tests, strict=True))

    texts = texts_of(0)
    found = {"who": {}, "label word": {}, "label word, from scratch": {}}
    for seed in SEEDS:
        base = read_once(texts, seed)
        set_seed(seed + 1)
        new = DecoderLM(config)
        for n in (4, 16, 64, 256):
            found["who"].setdefault(str(n), []).append(named(adapt(base, n, replay=texts), tests))
        for n in (16, 256):
            found["label word"].setdefault(str(n), []).append(tuned(base, n))
            tries = [tuned(new, n, peak) for peak in (2.5e-3, 5e-3)]
            found["label word, from scratch"].setdefault(str(n), []).append(max(tries))
    return found
