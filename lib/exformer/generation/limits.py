"""Limits of a beam search, which a recipe checks without loading PyTorch."""

MOST_BEAMS = 10_000  # rows of the model per prompt: more would fill the memory
LARGEST_PENALTY = 10.0  # far beyond what prefers long texts; larger powers of a length overflow
