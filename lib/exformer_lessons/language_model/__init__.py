"""The lesson on the decoder, a language model: grader, mistakes, sabotages, records."""
