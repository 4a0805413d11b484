"""Loss, optimizers, schedules, the loop, checkpoints."""
