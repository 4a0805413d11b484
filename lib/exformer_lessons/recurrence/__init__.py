"""The lesson on recurrent networks: grader, mistakes, sabotages, records."""
