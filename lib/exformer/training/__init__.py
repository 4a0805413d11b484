"""Optimizers, schedules, the training loop, the Trainer, checkpoints."""
