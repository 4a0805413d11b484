"""The lesson on summarization: grader, mistakes, sabotages, records."""
