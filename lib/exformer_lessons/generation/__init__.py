"""The lesson on generation: grader, mistakes, sabotages, records."""
