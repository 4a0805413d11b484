"""Wider sweeps of attention with and without recurrence: other rates, longer trainings, more sentences."""

import torch

from exformer_lessons.trials import sweep


def shares(right_after, make, seeds, **how):
    """Return the fraction of new sentences that are right, for some seeds."""
    found = []
    for seed in range(seeds):
        torch.manual_seed(seed)
        found.append(right_after(model=make(), **how))
    return found


@sweep("C03")
def budgets(right_after, with_lstm, transformer):
    """Return the fractions after 800 steps by rate, after longer trainings, and with 12,000 sentences."""
    torch.set_num_threads(1)
    tries = {
        "LSTM, forward only, no dropout": (with_lstm, {"both": False, "dropout": 0.0}, (0.005, 0.01, 0.02)),
        "LSTM, forward only, dropout": (with_lstm, {"both": False}, (0.01,)),
        "LSTM, both directions, no dropout": (with_lstm, {"dropout": 0.0}, (0.01,)),
        "LSTM, both directions, dropout": (with_lstm, {}, (0.005, 0.01, 0.02)),
        "the same without attention": (with_lstm, {"attention": False}, (0.01,)),
        "LSTM, forward only, dropout, without attention": (
            with_lstm,
            {"both": False, "attention": False},
            (0.01,),
        ),
        "transformer, no dropout": (transformer, {"dropout": 0.0}, (0.008,)),
        "transformer, dropout": (transformer, {}, (0.004, 0.008, 0.016)),
    }
    by_rate = {
        name: {
            str(peak): shares(right_after, lambda: make(**how), 2, steps=800, peak=peak)  # noqa: B023
            for peak in rates
        }
        for name, (make, how, rates) in tries.items()
    }
    makers = {
        "LSTM": (lambda: with_lstm(dropout=0.3), 0.01),
        "transformer": (lambda: transformer(dropout=0.2), 0.008),
    }
    until_flat = {
        name: {
            str(steps): shares(right_after, make, 3, steps=steps, peak=peak)
            for steps in (800, 1600, 2400, 4800)
        }
        for name, (make, peak) in makers.items()
    }
    makers = {
        "LSTM": (lambda: with_lstm(dropout=0.0), {240: 0.02, 800: 0.01}),
        "transformer": (lambda: transformer(dropout=0.0), {240: 0.008, 800: 0.004}),
    }
    all_sentences = {
        name: {
            str(steps): shares(right_after, make, 2, steps=steps, peak=peak, n_train=12_000)
            for steps, peak in peaks.items()
        }
        for name, (make, peaks) in makers.items()
    }
    return {"by rate": by_rate, "until flat": until_flat, "all sentences": all_sentences}
