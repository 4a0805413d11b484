"""The lesson on the encoder-decoder: grader, mistakes, sabotages, records."""
