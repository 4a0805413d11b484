"""Wider sweeps of position codes: more codes, narrow readers, an appended index, longer strings."""

from functools import partial

import torch
import torch.nn.functional as F

from exformer import sinusoidal_encoding, train
from exformer.training.loop import set_seed
from exformer.training.schedules import linear_schedule
from exformer_lessons.positional_encoding import naive
from exformer_lessons.trials import sweep


def _learn(make, loss_fn, *, steps=300, peak=1e-2, seed=0):
    torch.manual_seed(seed)
    reader = make()
    adam = torch.optim.AdamW(reader.parameters(), lr=peak, fused=True)
    falling = partial(linear_schedule, peak=peak, warmup=20, total=steps)
    strings = torch.randint(len(reader.embedding.weight), (steps, 64, 12))
    train(reader, strings, loss_fn=loss_fn, optimizer=adam, schedule=falling, clip_norm=1.0)
    return reader.eval()


@sweep("C15")
def more_codes(Reader, added, previous_token, accuracy):  # noqa: N803
    """Return the accuracy at trained positions and at 4 and 8, for more codes that are added."""
    waves = sinusoidal_encoding(12, d_model=32)
    shifted = waves.clone()
    shifted[:, 0] += 1_000
    torch.manual_seed(0)
    noise = 4 * F.normalize(torch.randn(12, 32), dim=1)  # as long as the sinusoids
    some = sinusoidal_encoding(1_000, d_model=32)[torch.randperm(1_000)[:12]]
    gaps = torch.arange(12)[:, None] - torch.arange(32)
    codes = {
        "one-hot, blurred": 4 * F.normalize(torch.exp(-(gaps**2) / 8), dim=1),
        "fractions": naive.fraction_encoding(12, d_model=32),
        "binary digits": naive.square_wave_encoding(12, d_model=32),
        "random rows": noise,
        "sinusoids in random order": some,
        "integers from 0": naive.integer_encoding(12, d_model=32),
        "sinusoids, 1,000 added to one column": shifted,
        "sinusoids times 250": 250 * waves,
    }
    return {
        name: accuracy(_learn(lambda rows=rows: Reader(added(rows)), previous_token))
        for name, rows in codes.items()
    }


@sweep("D10")
def narrow(Reader, added, beside, previous_token, accuracy):  # noqa: N803
    """Return the accuracy of models of width 8 at two learning rates, for three seeds each."""
    half = sinusoidal_encoding(12, d_model=4)
    codes = {"added": (added(sinusoidal_encoding(12, d_model=8)), 8), "beside": (beside(half), 4)}
    return {
        name: {
            peak: [
                accuracy(
                    _learn(
                        partial(Reader, code, n_tokens=64, d_token=d_token, d_model=8),
                        previous_token,
                        peak=peak,
                        seed=seed,
                    )
                )[0]
                for seed in (0, 1, 2)
            ]
            for peak in (1e-2, 3e-2)
        }
        for name, (code, d_token) in codes.items()
    }


@sweep("D08")
def longer(Reader, index, without_norm, previous_token, accuracy):  # noqa: N803
    """Return the accuracy at trained positions and at 4 and 8 after 4,800 batches without normalization."""

    def make():
        return without_norm(Reader(index, d_token=31))

    return {f"seed {seed}": accuracy(_learn(make, previous_token, steps=4_800, seed=seed)) for seed in (0, 1)}


@sweep("B02")
def readers(Masked, Reader, added, by_position, clock_hands, learn, summary):  # noqa: N803
    """Return the three accuracies of each seed, by positional encoding."""
    from exformer.nn.positions.absolute import LearnedPositions
    from exformer_lessons.positional_encoding.naive import integer_encoding, square_wave_encoding

    hands = clock_hands(24, d=32)
    makes = {
        "no code": lambda: Reader(),
        "integers": lambda: Reader(added(integer_encoding(24, d_model=32))),
        "integers from 100": lambda: Reader(added(integer_encoding(124, d_model=32)[100:])),
        "learned table": lambda: Reader(LearnedPositions(32, max_len=24)),
        "binary digits": lambda: Reader(added(square_wave_encoding(24, d_model=32))),
        "sinusoidal": lambda: Reader(added(hands)),
        "sinusoidal from 1,000": lambda: Reader(added(clock_hands(1024, d=32)[1000:])),
        "sinusoidal, shuffled": lambda: Reader(added(hands[torch.randperm(24)])),
        "rotary": lambda: Reader(positions="rotary"),
        "ALiBi": lambda: Reader(positions="alibi"),
        "ALiBi and causal mask": lambda: Masked(positions="alibi"),
        "causal mask alone": lambda: Masked(),
    }
    found = {name: [] for name in makes}
    for seed in range(5):
        for name, make in makes.items():
            set_seed(seed)
            found[name].append(summary(by_position(learn(make()))))
    return found


@sweep("B02")
def rotary_lengths(Reader, accuracy, learn):  # noqa: N803
    """Return the accuracy of rotary models beyond position 11 in longer and longer strings, for each seed."""
    found = {str(length): [] for length in (24, 48, 100, 200)}
    for seed in range(5):
        set_seed(seed)
        rotary = learn(Reader(positions="rotary"))
        for length, each in found.items():
            each.append(accuracy(rotary, int(length))[11:].mean().item())
    return found
