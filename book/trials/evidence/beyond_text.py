"""Wider sweeps beyond text: encoders without positions."""

from exformer.lessons.trials import sweep


@sweep("E01")
def no_positions(learn, tasks):
    """Give the accuracy on each task of an encoder without positions, by the learning rate."""
    return {
        task: {rate: learn(task, "no positions", rate=rate)[1] for rate in (2.7e-3, 8e-3, 2.4e-2)}
        for task in tasks
    }
