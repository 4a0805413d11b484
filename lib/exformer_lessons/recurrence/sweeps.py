"""Wider sweeps: reciting after more steps; recall at distance 32 by rate, steps and start."""

from exformer_lessons.trials import sweep

STEPS = (300, 3_000, 10_000)
RATES = (0.001, 0.003, 0.01, 0.03)


@sweep("A01")
def recital(recited, reciter, tests):
    """Return the fraction recited, by letters, width and steps."""
    found = {str(n): {str(width): {} for width in (16, 64)} for n in (8, 24)}
    for width in (16, 64):
        for steps in STEPS:
            model = reciter(width, steps)
            for n in (8, 24):
                found[str(n)][str(width)][str(steps)] = recited(model, tests[:, :n])
    return found


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
def recurrent_starts(accuracy, fit, nn, recall_lists, recall_loss, rnn_from, seed, set_seed, torch):
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
