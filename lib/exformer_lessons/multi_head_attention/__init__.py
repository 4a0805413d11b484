"""The lesson on multi-head attention: grader, mistakes, sabotages, records."""
