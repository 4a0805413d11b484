"""The lesson on sequence-to-sequence with attention: grader, mistakes, sabotages, records."""
