"""The lesson on the transformer layer: grader, mistakes, sabotages, records."""
