"""Wider sweeps: bits in a state; recall by rate, steps, start, distances; the unit of a subject's number."""

import torch

from exformer import RecurrentLM
from exformer_lessons.trials import sweep

STEPS = (300, 3_000, 10_000)
RATES = (0.001, 0.003, 0.01, 0.03)


@torch.no_grad()
def _recall_network(*, orthogonal):
    """Make the lesson's network of 48 units, from random weights or from an orthogonal U and a small W."""
    model = RecurrentLM(17, d_model=48)
    if orthogonal:
        layer = model.recurrent
        layer.weight_hh_l0.copy_(torch.linalg.qr(torch.randn(48, 48)).Q)
        layer.weight_ih_l0.normal_(std=0.001)
        layer.bias_ih_l0.zero_()
        layer.bias_hh_l0.zero_()
    return model


def _stretch(log_stretch, model, lists):
    """Return how much the Jacobians stretch (log10): the median of some lists."""
    return torch.stack([log_stretch(model, ids)[0] for ids in lists]).median().item()


@sweep("A01")
def bits(cross_entropy, reciter, tests):
    """Return the bits of a list that the last state gives back, by width and steps, one for each length."""
    found = {"letters": [1, 2, 4, 6, 8, 12, 16, 20, 24]}
    for width in (16, 64):
        by_steps = found.setdefault(str(width), {})
        for steps in STEPS:
            model = reciter(width, steps)
            row = by_steps.setdefault(str(steps), [])
            for n in found["letters"]:
                back = tests[:, :n].flip(1)
                with torch.no_grad():
                    loss = cross_entropy(model(tests[:, :n])[:, :n], back).item()
                row.append(n * (3 - loss / torch.tensor(2.0).log().item()))
    return found


@sweep("A03")
def teachings(accuracy, linear_schedule, log_stretch, recall_lists, recall_loss, set_seed, train):
    """Return the recall and the stretch over 8 and 32 steps, by distances taught and seed."""

    def learn(seed, distances, steps, peak, orthogonal=False):
        set_seed(seed)
        batches = [recall_lists(32, distances[i % len(distances)]) for i in range(steps)]
        model = _recall_network(orthogonal=orthogonal)
        if batches:
            train(
                model,
                batches,
                loss_fn=recall_loss,
                optimizer=torch.optim.AdamW(model.parameters(), fused=True),
                schedule=lambda step: linear_schedule(step, peak=peak, warmup=steps // 10, total=steps),
                clip_norm=1.0,
            )
        model.eval()
        row = {f"recall at {n}": accuracy(model, n) for n in (1, 8, 32, 512)}
        for n in (8, 32):
            row[f"log10 over {n}"] = _stretch(log_stretch, model, recall_lists(20, n))
        return row

    tries = {
        "untrained": ([1], 0, 1e-2),
        "1 to 8": (list(range(1, 9)), 400, 1e-2),
        "1 to 8, rate 0.001": (list(range(1, 9)), 400, 1e-3),
        "1 to 8, rate 0.003": (list(range(1, 9)), 400, 3e-3),
        "32": ([32], 400, 1e-2),
        "32, rate 0.001": ([32], 400, 1e-3),
        "32, rate 0.003": ([32], 400, 3e-3),
        "32, rate 0.03": ([32], 400, 3e-2),
        "32, 1,600 batches": ([32], 1_600, 1e-2),
        "32, orthogonal U": ([32], 400, 1e-2, True),
        "32, orthogonal U, rate 0.001": ([32], 400, 1e-3, True),
        "32, orthogonal U, rate 0.003": ([32], 400, 3e-3, True),
        "1 to 32": (list(range(1, 33)), 400, 1e-2),
        "1 to 32, 1,600 batches": (list(range(1, 33)), 1_600, 1e-2),
        "growing from 1 to 32": ([1 + i * 32 // 400 for i in range(400)], 400, 1e-2),
        "1": ([1], 400, 1e-2),
        "4": ([4], 400, 1e-2),
        "8": ([8], 400, 1e-2),
        "8, 1,600 batches": ([8], 1_600, 1e-2),
    }
    return {name: [learn(seed, *how) for seed in range(5)] for name, how in tries.items()}


@sweep("D02")
def number_unit(
    agreement_accuracy, fit, ids_of, items, lstm_lm, next_word_loss, one_pass, set_seed, tokenizer
):
    """Return the units of the cell state that tell a plural subject from a singular one, by seed.

    A unit does if the two numbers differ by more than 1 at every word from the noun on, in each of ten
    pairs of sentences. The units are exchanged at each of these words, or all others are, and the verbs that
    then have the other number are counted.
    """
    nouns = [("key", "keys"), ("boy", "boys"), ("dog", "dogs"), ("queen", "queens")]
    ends = ["behind these houses beside the horse", "near the cats"]
    of_keys = ["to the cabinet near the door", "to the cabinets near the doors"]
    pairs = [
        (f"the {many} {end}", f"the {one} {end}")
        for one, many in nouns
        for end in (of_keys if one == "key" else []) + ends
    ]

    @torch.no_grad()
    def read(model, text, units=(), theirs=None):
        """Return the cell states, and whether *is* is likelier than *are*."""
        layer = model.recurrent
        w, u, b_w, b_u = layer.parameters()
        h = c = torch.zeros(layer.hidden_size)
        cells = []
        for k, x in enumerate(model.embedding(torch.tensor(ids_of(text)))):
            i, f, g, o = (w @ x + u @ h + b_w + b_u).chunk(4)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            if theirs is not None and k >= 2:  # from the noun on
                c = c.clone()
                c[units] = theirs[k, units]
            h = o.sigmoid() * c.tanh()
            cells.append(c)
        one, many = model.embedding.logits(h)[tokenizer.encode("is are")]
        return torch.stack(cells), (one > many).item()

    found = {}
    for seed in range(5):
        set_seed(seed)
        batches = [batch for n in range(4) for batch in one_pass(n)]
        model = fit(lstm_lm(), batches, loss_fn=next_word_loss)
        states = [[read(model, text)[0] for text in pair] for pair in pairs]
        apart = torch.stack([(a - b)[2:].abs().amin(dim=0) for a, b in states]).amin(dim=0)
        kinds = {"these": (apart > 1).nonzero().flatten(), "all others": (apart <= 1).nonzero().flatten()}
        row = {
            "right": [agreement_accuracy(model, group) for group in items],
            "units": kinds["these"].tolist(),
        }
        for kind, units in kinds.items():
            row[f"{kind} exchanged"] = sum(
                read(model, many, units, b)[1] + (not read(model, one, units, a)[1])
                for (many, one), (a, b) in zip(pairs, states, strict=True)
            )
        plural, singular = states[0]
        row["plural"] = {str(n): plural[1:, n].tolist() for n in row["units"]}
        row["singular"] = {str(n): singular[1:, n].tolist() for n in row["units"]}
        found[str(seed)] = row
    return {"sentences": 2 * len(pairs), "words": pairs[0][0].split(), "trainings": found}


@sweep("C01")
def rates(accuracy, fit, recall_lists, recall_loss, seed, set_seed, starts):
    """Return the accuracy at distance 32, by network and steps and by learning rate."""
    found = {}
    for name, steps in (("RNN", 800), ("LSTM", 800), ("LSTM", 3_200)):
        row = found.setdefault(f"{name}, {steps:,} steps", {})
        for rate in RATES:
            set_seed(seed)
            batches = [recall_lists(32, 32) for _ in range(steps)]
            model = fit(starts[name](), batches, loss_fn=recall_loss, peak=rate)
            row[str(rate)] = accuracy(model, 32)
    return found


@sweep("C01")
def recurrent_starts(accuracy, fit, nn, recall_lists, recall_loss, rnn_from, seed, set_seed):
    """Return the accuracy of an RNN at distance 32 after 800 steps, by initialization and learning rate."""

    def orthogonal():
        return torch.linalg.qr(torch.randn(48, 48)).Q

    def rectified():  # Le et al. (2015): the identity, and no tanh
        model = rnn_from(torch.eye(48))
        layer = nn.RNN(48, 48, batch_first=True, nonlinearity="relu")
        layer.load_state_dict(model.recurrent.state_dict())
        model.recurrent = layer
        return model

    def right(make, rate):
        set_seed(seed)
        batches = [recall_lists(32, 32) for _ in range(800)]
        return accuracy(fit(make(), batches, loss_fn=recall_loss, peak=rate), 32)

    usual = 48**-0.5 / 3**0.5  # the standard deviation of PyTorch's initialization
    starts = {
        "U orthogonal": lambda: rnn_from(orthogonal(), size_w=usual),
        "U identity": lambda: rnn_from(torch.eye(48), size_w=usual),
        "W small": lambda: rnn_from(usual * torch.randn(48, 48)),
        "U orthogonal, W small": lambda: rnn_from(orthogonal()),
        "U random, as large, W small": lambda: rnn_from(torch.randn(48, 48) / 48**0.5),
        "U identity, W small": lambda: rnn_from(torch.eye(48)),
        "U identity, W small, ReLU": rectified,
    }
    return {name: {str(rate): right(make, rate) for rate in RATES} for name, make in starts.items()}


@sweep("D02")
def passes(agreement_accuracy, fit, items, lstm_lm, n_words, next_word_loss, one_pass, set_seed):
    """Return the right verbs past 0 to 4 attractors, by network, passes and seed, or by learning rate."""

    def right(make, n_passes, seed, peak=0.01):
        set_seed(seed)
        batches = [batch for n in range(n_passes) for batch in one_pass(n)]
        model = fit(make(), batches, loss_fn=next_word_loss, peak=peak)
        return [agreement_accuracy(model, group) for group in items]

    def rnn_lm():  # with as many parameters as the LSTM
        return RecurrentLM(n_words, d_model=81)

    by_seed = {
        "LSTM, 1 pass": [right(lstm_lm, 1, seed) for seed in range(5)],
        "RNN, 1 pass": [right(rnn_lm, 1, seed) for seed in range(5)],
        "RNN, 4 passes": [right(rnn_lm, 4, seed) for seed in range(5)],
    }
    by_rate = {str(rate): right(rnn_lm, 4, 0, rate) for rate in RATES}
    return {"by seed": by_seed, "RNN, 4 passes, by rate": by_rate}
