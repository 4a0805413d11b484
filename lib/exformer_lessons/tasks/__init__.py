"""The lesson on every task as text: grader, mistakes, sabotages, records."""
