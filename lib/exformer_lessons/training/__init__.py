"""The lesson on training, and what goes wrong: grader, mistakes, sabotages, records."""
