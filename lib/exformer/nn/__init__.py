"""The parts: masks, embeddings, positions, attention, normalization, feed-forward networks, layers, loss."""
