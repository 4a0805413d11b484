"""The lesson on embeddings: grader, mistakes."""
