"""The lesson on preferences and rewards: judges, training by judgment, grader, mistakes, records."""
