"""The lesson on positional encoding: grader, mistakes, sabotages, records."""
