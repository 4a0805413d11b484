"""A recipe -> a trained model in a folder, through any number of interruptions."""

import hashlib
import math
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from tqdm import tqdm

from exformer.data.sampler import MicroBatch, split_steps
from exformer.hub.pretrained import load_model
from exformer.recipes import find_recipe
from exformer.recipes.datasets import CORPORA, Pairs, Text
from exformer.recipes.distillation import add_answers, ask_teacher, check_teachers, texts_for
from exformer.recipes.environment import Clock, keep_freed_memory
from exformer.recipes.finish import finish_run
from exformer.recipes.recipe import Recipe
from exformer.recipes.recipe_optimizers import Optimizers, make_optimizers
from exformer.recipes.run_folder import RunFolder
from exformer.recipes.task import Task, learn_tokenizer, make_task, validation_loss
from exformer.tokenizers.tokenizer import Tokenizer
from exformer.training.checkpoint import load_checkpoint, save_checkpoint
from exformer.training.loop import LossFn, set_seed, training_steps


def run_recipe(recipe: Recipe, folder: str | Path, *, resume: bool = False, progress: bool = False) -> Path:
    """Train what a recipe says, with checkpoints; a run that was cut goes on to the same weights.

    Where several processes were started by ``accelerate launch``, they share the work.

    Args:
        recipe: All that the run depends on.
        folder: Of the run, see :class:`~exformer.recipes.run_folder.RunFolder`.
        resume: Go on with the run in the folder.
        progress: Show bars.

    Returns:
        The folder of the final model, for :func:`~exformer.hub.pretrained.load_model`.

    Raises:
        ValueError: If no run can follow the recipe, the folder holds another run or is in use, the corpus is
            not to be had or not what the run began with, or training fails.
    """
    from accelerate import Accelerator  # here: it takes seconds, and lessons do not need it

    check_teachers(recipe)
    keep_freed_memory()
    accelerator = Accelerator(mixed_precision=recipe.precision)
    place, progress = RunFolder(folder), progress and accelerator.is_main_process
    with place.alone() if accelerator.is_main_process else nullcontext():
        _run(recipe, place, accelerator, resume, progress)
    return place.model


def _run(recipe: Recipe, place: RunFolder, accelerator: Any, resume: bool, progress: bool) -> None:
    with accelerator.main_process_first():  # the others find the tokenizer
        data = CORPORA[recipe.corpus]()  # before the folder holds a run: there may be no network
        place.open(recipe, resume=resume or not accelerator.is_main_process)
        place.check_input("data", data.hashes)
        title = "learning byte pairs" if progress else ""
        tokenizer = learn_tokenizer(recipe, data, place.tokenizer, progress=title)
        place.check_input("tokenizer", hashlib.sha256(place.tokenizer.read_bytes()).hexdigest())
    if not place.is_finished():
        data, spent = _teach(recipe, data, tokenizer, place, accelerator, progress)
        if recipe.teachers and accelerator.is_main_process:
            place.check_input("teachers' translations", data.hashes)
        set_seed(recipe.seed)
        task = make_task(recipe, data, tokenizer, device=accelerator.device)
        task.model.to(accelerator.device)
        clock = _train(recipe, task, place, accelerator, progress)
        if accelerator.is_main_process:
            times = {recipe.name: clock.read(), **spent}
            finish_run(recipe, task, data, place, times, progress=progress)
        accelerator.wait_for_everyone()


def _teach(
    recipe: Recipe,
    data: Pairs | Text,
    tokenizer: Tokenizer,
    place: RunFolder,
    accelerator: Any,
    progress: bool,
) -> tuple[Pairs | Text, dict[str, dict[str, float]]]:
    """Train the teachers and ask them; return the corpus with their answers, and how long each has taken."""
    if not recipe.teachers:
        return data, {}
    # Teachers take hours: what no run can follow is to be found before.
    make_optimizers(recipe, make_task(recipe, data, tokenizer, device=torch.device("cpu")).model)
    # One precision for all: a process has one.
    own = {"seed": recipe.seed_of_teachers, "precision": recipe.precision}
    teachers = {name: replace(find_recipe(name), **own) for name in recipe.teachers}
    reads = {name: texts_for(teacher, data) for name, teacher in teachers.items()}
    answers, spent = {}, {}
    for name, teacher in teachers.items():
        room, (side, texts) = place.teacher(name), reads[name]
        # Two runs that learn from one teacher may be started together: the second waits.
        with room.alone(wait=True) if accelerator.is_main_process else nullcontext():
            _run(teacher, room, accelerator, True, progress)
            with accelerator.main_process_first():  # the others read what it has written
                found = ask_teacher(teacher, room, texts, progress=name if progress else "")
        answers[name] = (side, found["texts"])
        training = load_model(room.model).card["training"]
        spent[name] = {what: round(training[what] + found["time"][what], 3) for what in training}
    return add_answers(data, answers, tokenizer=tokenizer), spent


def _train(recipe: Recipe, task: Task, place: RunFolder, accelerator: Any, progress: bool) -> Clock:
    """Take all steps that are left; return how long the run has taken."""
    optimizers = make_optimizers(recipe, task.model)
    done, notes = _go_back(task, optimizers, place, accelerator)
    clock = Clock(notes)
    walk = training_steps(
        accelerator.prepare_model(task.model),
        islice(_steps(recipe, task, done, accelerator), 0 if notes.get("ended") else recipe.steps - done),
        loss_fn=partial(task.loss_fn, label_smoothing=recipe.label_smoothing),
        optimizers=optimizers,
        clip_norm=recipe.clip_norm,
        first_step=done + 1,
        backward=partial(_backpropagate_parts, accelerator),
    )
    bar = tqdm(walk, desc=recipe.name, initial=done, total=recipe.steps, disable=not progress)
    for step, loss in enumerate(bar, start=done + 1):
        bar.set_postfix(loss=f"{loss:.2f}", refresh=False)
        line, measured = {"step": step, "loss": loss}, step == recipe.steps or step % recipe.every == 0
        if measured:
            notes = _measure(recipe, task, step, notes, accelerator)
            line["validation_loss"] = notes["validation_loss"]
        if accelerator.is_main_process:
            place.note(line | clock.read())
            if measured:
                _save(recipe, step, task, optimizers, notes | clock.read(), place)
        if measured and notes["ended"]:
            break
    return clock


def _backpropagate_parts(
    accelerator: Any, model: nn.Module, parts: list[MicroBatch], loss_fn: LossFn
) -> float:
    """Add up the gradients and losses of the parts, each with its share; processes talk at the last only."""
    losses = []
    for part in parts:
        with nullcontext() if part is parts[-1] else accelerator.no_sync(model):
            loss = loss_fn(model, part.batch) * part.share
            losses.append(loss.detach())
            # It takes the mean over the processes, but the shares make it a sum.
            accelerator.backward(loss * accelerator.num_processes)
    return accelerator.reduce(torch.stack(losses).sum(), "sum").item()


def _measure(
    recipe: Recipe, task: Task, step: int, notes: dict[str, Any], accelerator: Any
) -> dict[str, Any]:
    """Measure the model on the validation set, and say whether the run ends here."""
    own = torch.tensor(validation_loss(task, task.model), dtype=torch.float64, device=accelerator.device)
    found = accelerator.reduce(own, "mean").item()  # all processes must come to the same end
    if not math.isfinite(found):  # before it is saved
        raise ValueError(f"the validation loss is {found} after step {step}: lower the learning rate")
    best = notes.get("best", math.inf)
    since = 0 if found < best else notes["since"] + 1
    ended = step == recipe.steps or 0 < recipe.patience <= since
    return {"validation_loss": found, "best": min(found, best), "since": since, "ended": ended}


def _steps(recipe: Recipe, task: Task, done: int, accelerator: Any) -> Iterator[list[MicroBatch]]:
    """Give this process its parts of each step; what is left to chance depends on seed, step and process."""
    own = {"process": accelerator.process_index, "processes": accelerator.num_processes}
    parts = split_steps(task.source, done=done, accumulate=recipe.accumulate, **own)
    for step, these in enumerate(parts, start=done + 1):
        chance = np.random.SeedSequence((recipe.seed, step, own["process"]))
        set_seed(int(chance.generate_state(1)[0]))
        yield these


def _go_back(
    task: Task, optimizers: Optimizers, place: RunFolder, accelerator: Any
) -> tuple[int, dict[str, Any]]:
    """Put the run back to its last checkpoint, if there is one."""
    done, notes, last = 0, {}, place.last_checkpoint()
    if last is not None:
        plain = [optimizer for optimizer, _ in optimizers]
        done, notes = load_checkpoint(last, model=task.model, optimizers=plain)
    if accelerator.is_main_process:
        place.cut_log(done=done)
    return done, notes


def _save(
    recipe: Recipe, step: int, task: Task, optimizers: Optimizers, notes: dict[str, Any], place: RunFolder
) -> None:
    save_checkpoint(
        place.checkpoints,
        step=step,
        model=task.model,
        optimizers=[optimizer for optimizer, _ in optimizers],
        notes=notes,
        keep=recipe.average,
    )
