"""The lesson on self-attention: grader, mistakes, sabotages, records."""
