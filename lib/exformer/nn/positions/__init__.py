"""Positions: added to the embeddings, or acting on queries and keys."""
