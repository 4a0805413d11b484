"""The lesson on tokens: grader, mistakes, sabotages, records."""
