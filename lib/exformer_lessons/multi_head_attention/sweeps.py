"""Wider sweeps: one head with more training, and with a loss that counts whole answers."""

from functools import partial

import torch

from exformer import train
from exformer.training.schedules import linear_schedule
from exformer_lessons.trials import sweep

FORMS = {
    "one head": {},
    "one head, twice as wide": {"d_model": 64},
    "one head, values with places": {"aware": True},
    "one head, both": {"d_model": 64, "aware": True},
}


@sweep("C11")
def longer(Reader, learn, share_right):  # noqa: N803
    """Return the fraction of whole answers of one head after 800 steps at a learning rate of 0.02."""

    def new(seed, **form):
        torch.manual_seed(seed)
        return Reader(n_heads=1, **form)

    def share(seed, form):
        return share_right(learn(partial(new, seed, **form), 0.02, 800))

    return {name: [share(seed, form) for seed in range(5)] for name, form in FORMS.items()}


@sweep("C11")
def whole_answers(Reader, share_right, loss_of, truth):  # noqa: N803
    """Return it for the narrow head after 100 steps with the lesson's loss and 600 with another."""

    def loss_of_both(reader, row):
        answers = reader(row).log_softmax(dim=-1)
        right = answers.gather(-1, truth(row, answers)[..., None])[..., 0]
        return 1 - right.sum(dim=-1).exp().mean()

    def share(seed):
        torch.manual_seed(seed)
        reader = Reader(n_heads=1)
        for loss, steps in ((loss_of, 100), (loss_of_both, 600)):
            rows = list(torch.randint(16, (steps, 64, 12)))
            adam = torch.optim.AdamW(reader.parameters(), betas=(0.9, 0.98), fused=True)
            falling = partial(linear_schedule, peak=0.01, warmup=20, total=steps)
            train(reader, rows, loss_fn=loss, optimizer=adam, schedule=falling, clip_norm=1.0)
        return share_right(reader.eval().requires_grad_(False))

    return {"one head, loss of whole answers": [share(seed) for seed in range(5)]}
