"""The lesson on the block of 2017 and today's: its runs, experts, grader and mistakes."""
