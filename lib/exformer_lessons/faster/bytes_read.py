"""The bytes that a large model reads for one token, and a picture: a bar for each trick that removes some."""

from exformer_lessons.diagrams import Shape, box, column, row, text

# Llama 3.1 8B (Grattafiori et al. 2024, table 3)
_LAYERS, _D_MODEL, _D_HEAD, _D_FF, _VOCAB, _POSITIONS = 32, 4096, 128, 14336, 128_256, 131_072


def read_per_token(
    *, kv_heads: int = 8, bits: float = 16.0, fixed_state: bool = False
) -> tuple[float, float]:
    """Return how many GB of weights and of cache Llama 3.1 8B reads for one token after 131,072 others.

    The embedding of the input is not among the weights, since a token reads one row of it.

    Args:
        kv_heads: Heads of keys and values, of 128 numbers each.
        bits: Of a weight, with its part of a scale. A number of the cache or of a state has 16.
        fixed_state: Whether each head has a matrix of 128 × 128 numbers in place of the cache.

    Raises:
        ValueError: If a number is not above 0.

    >>> [round(gigabytes, 1) for gigabytes in read_per_token()]
    [15.0, 17.2]
    """
    if min(kv_heads, bits) <= 0:
        raise ValueError(f"expected numbers above 0, got {kv_heads} and {bits}")
    attention = 2 * _D_MODEL**2 + 2 * _D_MODEL * kv_heads * _D_HEAD
    weights = _LAYERS * (attention + 3 * _D_MODEL * _D_FF) + _D_MODEL * _VOCAB
    kept = _D_HEAD if fixed_state else 2 * _POSITIONS  # rows of 128 numbers for each head
    cache = _LAYERS * kv_heads * kept * _D_HEAD
    return weights * bits / 8 / 1e9, cache * 2 / 1e9


def bars_of_bytes() -> Shape:
    """Draw what is read for one token after each trick, to scale."""
    other = "a different model"
    tricks = {
        "32 heads of keys and values": ("", read_per_token(kv_heads=32)),
        "grouped: 8 heads": ("Llama 3.1 8B itself", read_per_token()),
        "4 bits, a scale per group: 4.5 bits": (other, read_per_token(bits=4.5)),
        "a state of fixed size, no cache": (other, read_per_token(bits=4.5, fixed_state=True)),
    }
    unit = 300 / max(sum(parts) for _, parts in tricks.values())
    legend = [row(_bar(14.0, role), text(name, size=12), gap=5) for name, role in ROLES.items()]
    bars = [row(*legend, gap=22)]
    for name, (kept, parts) in tricks.items():
        drawn = [_bar(unit * part, role) for part, role in zip(parts, ROLES.values(), strict=True)]
        total = text(f"{sum(parts):.0f} GB", size=13, bold=True)
        bar = row(row(*[each for each in drawn if each.width >= 0.5], gap=0), total, gap=7)
        title = row(text(name, size=13, bold=True), text(kept, size=12, muted=True), gap=9)
        bars.append(column(title, bar, gap=3, align="left"))
    return column(*bars, gap=12, align="left")


#: The colors of the two parts of a bar.
ROLES = {"weights": "high", "cache": "key"}


def _bar(width: float, role: str) -> Shape:
    return box("", role=role, width=width, height=18, radius=1)
