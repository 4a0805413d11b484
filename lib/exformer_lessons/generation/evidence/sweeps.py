"""Wider sweeps of the evidence on generation: real captions, Shakespeare's own words, words that are none.

The captions are the first 200 of the test set of Multi30k. They and Tiny Shakespeare are fetched, or read
from the folder that EXFORMER_DATA names.
"""

import re

import torch

from exformer import beam_search, corpus_bleu, load_model, pad
from exformer.corpora.real import multi30k, tiny_shakespeare
from exformer.generation.next_token import Continuation
from exformer.generation.sampling import apply_temperature, greedy, keep_top_k, keep_top_p, sample
from exformer.nn.loss import nll
from exformer_lessons.trials import sweep

#: The widths of the beams, and the tokens of a prompt and of what follows it.
WIDTHS = (1, 2, 5, 10, 30)
PROMPT, NEW = 16, 40


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


@sweep("C27")
def validation_text(N_NEW, N_PROMPT, costs, repeated):  # noqa: N803
    """Return nats per token and the fraction of repeated pairs, after 400 passages of the validation text."""
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
            Continuation(model.model),
            prompts,
            generator=rng,
            logits_processor=lambda z: keep_top_p(z, 0.9),
            **limits,
        ),
        "greedy": greedy(Continuation(model.model), prompts, **limits),
    }
    for beam in (4, 16):
        found = beam_search(Continuation(model.model), prompts, num_beams=beam, length_penalty=0.0, **limits)
        texts[f"beam {beam}"] = [text.ids for text in found]
    return {
        name: [costs(model.model, prompts, new).mean().item(), repeated(new)] for name, new in texts.items()
    }


@sweep("C28")
def no_words():
    """Return the fraction of words unknown to Shakespeare's text, over 1,600 texts, and its standard error.

    Each text has 47 characters. The prompts are spread over the validation text, and no two overlap.
    """
    torch.set_num_threads(1)
    model = load_model("shakespeare-char")
    old, new = tiny_shakespeare()
    known = set(words_of(old))
    ids = model.tokenizer.encode(new)
    starts = range(0, 1600 * 69, 69)
    prompts = torch.tensor([ids[at : at + 16] for at in starts])
    ways = {
        "as it is": None,
        "T = 0.5": lambda z: apply_temperature(z, 0.5),
        "k = 5": lambda z: keep_top_k(z, 5),
        "p = 0.9": lambda z: keep_top_p(z, 0.9),
    }
    shares = {"Shakespeare": [new[at + 16 : at + 63] for at in starts]}
    for name, change in ways.items():
        rng = torch.Generator().manual_seed(0)
        limits = {"eos_id": -1, "max_new_tokens": 47, "generator": rng, "logits_processor": change}
        shares[name] = [
            model.tokenizer.decode(t)
            for part in prompts.split(400)
            for t in sample(Continuation(model.model), part, **limits)
        ]
    return {name: unknown_share(texts, known) for name, texts in shares.items()}


@sweep("C28")
@torch.no_grad()
def tail():
    """Return the fraction of tokens that top-p of 0.9 would have cut, and its standard error, over 700 texts.

    The passages are spread over the validation text, and what follows one prompt is in no other passage.
    """
    torch.set_num_threads(1)
    model = load_model("shakespeare-bpe")
    ids = model.tokenizer.encode(tiny_shakespeare()[1])
    starts = range(0, len(ids) - PROMPT - NEW, (len(ids) - PROMPT - NEW) // 700)
    rows = torch.tensor([ids[at : at + PROMPT + NEW] for at in starts][:700])
    prompts = rows[:, :PROMPT]
    rng = torch.Generator().manual_seed(0)
    limits = {"eos_id": -1, "max_new_tokens": NEW, "generator": rng}
    sampled = [t for part in prompts.split(100) for t in sample(Continuation(model.model), part, **limits)]
    found = {}
    for name, texts in {
        "Shakespeare": rows,
        "sampled": torch.cat([prompts, torch.tensor(sampled)], 1),
    }.items():
        kept = [keep_top_p(model.model(part[:, :-1]), 0.9).isfinite() for part in texts.split(50)]
        used = torch.cat(kept).gather(-1, texts[:, 1:, None]).squeeze(-1)[:, PROMPT - 1 :]
        found[name] = share_of([[int(each), NEW] for each in (~used).sum(dim=1)])
    return found


@sweep("C28")
def equal_diversity():
    """Return the probability of a wrong word, in percent, by rule, over five seeds of the lesson's training.

    Each rule is set to leave the grammar's diversity on 200 new sentences, top-k as nearly as it can.
    """
    from exformer import DecoderLM, DecoderLMConfig, WordTokenizer, cross_entropy, train
    from exformer.corpora import english
    from exformer.generation.sampling import keep_min_p
    from exformer.training.schedules import linear_schedule

    torch.set_num_threads(1)
    words = WordTokenizer.from_texts(english.WORDS)

    def encoded(texts):
        return pad([[words.bos_id, *words.encode(s), words.eos_id] for s in texts], pad_id=words.pad_id)

    def loss_of(model, ids):
        return cross_entropy(model(ids[:, :-1]), ids[:, 1:], pad_id=words.pad_id)

    def rate(step):
        return linear_schedule(step, peak=8e-3, warmup=50, total=300)

    def measured(z):
        p = z.softmax(dim=-1)
        return torch.special.entr(p).sum(dim=-1).mean().item(), 100 * (p * wrong).sum(dim=-1).mean().item()

    def nearest(change, least, most):
        """Halve the interval of a setting that leaves the more diversity, the larger it is."""
        for _ in range(20):
            middle = (least + most) / 2
            wide = measured(change(middle))[0] > diversity
            least, most = (least, middle) if wide else (middle, most)
        return measured(change(middle))

    written = english.sample(15_000, seed=0)
    batches = [encoded(written[i : i + 50]) for i in range(0, 15_000, 50)]
    read = encoded(english.sample(1_000, seed=1)[:200])
    real = read[:, 1:] != words.pad_id
    rows = []
    for ids, n in zip(read.tolist(), real.sum(dim=1).tolist(), strict=True):
        for t in range(n):
            possible = english.prefix_distribution(words.decode(ids[1 : t + 1]))
            p = torch.zeros(words.vocab_size, dtype=torch.float64)
            for word, chance in possible.items():
                p[words.eos_id if word == english.END else words.encode(word)[0]] = chance
            rows.append(p)
    exact = torch.stack(rows)
    wrong = exact == 0
    diversity = torch.special.entr(exact).sum(dim=-1).mean().item()

    found = {name: [] for name in ("sampled", "top-k", "temperature", "top-p", "min-p")}
    for seed in range(5):
        torch.manual_seed(seed)
        sizes = {"d_model": 48, "n_heads": 4, "d_ff": 192, "n_layers": 2}
        model = DecoderLM(DecoderLMConfig(words.vocab_size, max_len=256, dropout=0.0, **sizes)).double()
        adam = torch.optim.AdamW(model.parameters(), fused=True)
        train(model, batches, loss_fn=loss_of, optimizer=adam, schedule=rate, clip_norm=1.0)
        with torch.no_grad():
            z = model.eval()(read[:, :-1])[real]
        by_k = [measured(keep_top_k(z, k)) for k in range(10, 35)]
        of_rule = {
            "sampled": measured(z),
            "top-k": min(by_k, key=lambda both: abs(both[0] - diversity)),
            "temperature": nearest(lambda t, z=z: apply_temperature(z, t), 0.5, 1.0),
            "top-p": nearest(lambda p, z=z: keep_top_p(z, p), 0.8, 1.0),
            "min-p": nearest(lambda m, z=z: keep_min_p(z, -m), -0.3, 0.0),
        }
        for name, (_, percent) in of_rule.items():
            found[name].append(percent)
    return found


def words_of(text):
    """Return the words, in small letters."""
    return re.findall(r"[a-z]+", text.lower())


def unknown_share(texts, known):
    """Return the fraction of unknown words, without each text's first and last, which may be cut."""
    inner = [words_of(text)[1:-1] for text in texts]
    return share_of([[sum(word not in known for word in words), len(words)] for words in inner])


def share_of(counts):
    """Return the fraction over all texts, and its standard error, because the texts are independent."""
    part, whole = map(sum, zip(*counts, strict=True))
    share = part / whole
    return [share, sum((a - share * n) ** 2 for a, n in counts) ** 0.5 / whole]
