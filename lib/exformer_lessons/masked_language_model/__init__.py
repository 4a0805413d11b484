"""The lesson on the encoder, a masked language model: grader, mistakes, sabotages, records."""
