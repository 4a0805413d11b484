"""The end of a run: checkpoints -> the final model, with all that is known of it."""

from collections.abc import Mapping

import torch

from exformer.hub.pretrained import save_model
from exformer.recipes.datasets import Pairs, Text
from exformer.recipes.environment import machine
from exformer.recipes.recipe import Recipe
from exformer.recipes.run_folder import RunFolder
from exformer.recipes.scores import score
from exformer.recipes.task import Task
from exformer.training.checkpoint import average_weights, find_checkpoints

FILE_TYPE = torch.float16  # of the final weights: half the bytes


def finish_run(
    recipe: Recipe,
    task: Task,
    data: Pairs | Text,
    place: RunFolder,
    times: Mapping[str, Mapping[str, float]],
    *,
    progress: bool = False,
) -> None:
    """Write the mean of the last checkpoints, and its card.

    Args:
        recipe: Of the run.
        task: Trained.
        data: All that was learned from.
        place: Of the run.
        times: Seconds of the run, and of each teacher, by the names of their recipes.
        progress: Show bars.
    """
    last = find_checkpoints(place.checkpoints)[-recipe.average :]
    task.model.load_state_dict(average_weights(last, dtype=FILE_TYPE))  # judged as it will be read
    clocks = times[recipe.name]
    card = {
        "recipe": recipe.settings(),
        "data": data.hashes,
        "seed": recipe.seed,
        "steps": int(last[-1].stem.removeprefix("step_")),
        "mean_of": [path.stem for path in last],
        "parameters": sum(p.numel() for p in task.model.parameters()),
        "training": {clock: round(sum(each[clock] for each in times.values()), 3) for clock in clocks},
        **({"times": times} if recipe.teachers else {}),
        "machine": machine(next(task.model.parameters()).device),
        **task.notes,
        "scores": score(task, data, recipe, progress=progress),
        "history": place.history(),
    }
    task.model.eval().cpu()
    save_model(place.model, task.model, tokenizers=task.tokenizers, card=card, dtype=FILE_TYPE)
