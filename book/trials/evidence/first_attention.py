"""Wider sweeps of attention without recurrence: fewer steps, and fewer sentences at several rates."""

import torch

from exformer import train, translate
from exformer.data.translation import take_rows
from exformer.evaluation.metrics import exact_match
from exformer.lessons.trials import sweep
from exformer.training.schedules import linear_schedule


@sweep("C03")
def budgets(with_lstm, transformer, loss_of, sentences, n_tokens, corpus, english, italian):
    """Give the share of new sentences right to the letter for three seeds, by steps, sentences and rate."""
    sources, targets = ([getattr(pair, side) for pair in corpus.test] for side in ("source", "target"))

    def right(make, peak, seed, steps, n):
        torch.manual_seed(seed)
        model = make()
        chosen = torch.randint(n, (steps, 64)).numpy()
        batches = (take_rows(sentences, c, lengths=n_tokens) for c in chosen)
        adam = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.98), fused=True)

        def rate(step):
            return linear_schedule(step, peak=peak, warmup=steps // 10, total=steps)

        train(model, batches, loss_fn=loss_of, optimizer=adam, schedule=rate, clip_norm=1.0)
        texts = translate(model.eval(), (english, italian), sources, max_new_tokens=18)
        return exact_match(texts, targets)

    makers = {"transformer": transformer, "LSTM with attention": with_lstm}
    few_steps = {"transformer": [0.008], "LSTM with attention": [0.02]}  # as in the notebook
    few_sentences = {
        "transformer": [0.004, 0.008, 0.012, 0.016],
        "LSTM with attention": [0.005, 0.01, 0.02, 0.04],
    }
    cases = {"240 steps": (240, 12_000, few_steps), "1,000 sentences": (800, 1_000, few_sentences)}
    return {
        case: {
            name: {peak: [right(make, peak, seed, steps, n) for seed in range(3)] for peak in rates[name]}
            for name, make in makers.items()
        }
        for case, (steps, n, rates) in cases.items()
    }
