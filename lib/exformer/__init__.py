"""The transformer, built from nothing and proved by running it."""

__version__ = "0.1.0"
