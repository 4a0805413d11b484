"""Wider sweeps for the lesson on positions: all its readers, and longer strings, over five seeds."""

import torch

from exformer.training.loop import set_seed
from exformer_lessons.trials import sweep


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
