"""A recipe -> a trained model in a folder, however often the run is interrupted."""

import hashlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

import torch

from exformer.hub.pretrained import load_model, save_model
from exformer.recipes import find_recipe
from exformer.recipes.datasets import CORPORA, Pairs, Text, licenses
from exformer.recipes.distillation import add_answers, ask_teacher, check_teachers, texts_for
from exformer.recipes.evaluate import score
from exformer.recipes.machine_facts import describe_machine
from exformer.recipes.malloc import disable_malloc_trim
from exformer.recipes.recipe import Recipe
from exformer.recipes.run_folder import RunFolder
from exformer.recipes.task import Task, learn_tokenizer, make_task, training_batches
from exformer.tokenizers.tokenizer import Tokenizer
from exformer.training.checkpoint import average_weights
from exformer.training.distributed import Processes
from exformer.training.optimizers import make_optimizers
from exformer.training.seed import set_seed
from exformer.training.trainer import Trainer

_FILE_TYPE = torch.float16  # of the final weights: half the bytes
_Times = dict[str, dict[str, float]]  # seconds by clock, of each run by the name of its recipe


def run_recipe(
    recipe: Recipe,
    folder: str | Path,
    *,
    data: Pairs | Text | None = None,
    resume: bool = False,
    device: str = "cpu",
    progress: bool = False,
    on_measure: Callable[[Trainer], None] | None = None,
) -> Path:
    """Train the model of a recipe, with checkpoints; an interrupted run is resumed to the same weights.

    Several processes that were started by ``accelerate launch`` divide the work. A finished run that is
    resumed is left alone, unless its recipe now has more steps, or its model is missing or damaged.

    Args:
        recipe: All that the run depends on.
        folder: Folder of the run, see :class:`~exformer.recipes.run_folder.RunFolder`.
        data: The training data; None: the corpus that the recipe names.
        resume: Resume the run in the folder, or begin if there is none.
        device: Device of a single process, such as "cuda"; several have their own.
        progress: Show progress bars.
        on_measure: See :class:`~exformer.training.trainer.Trainer`.

    Returns:
        The folder of the final model, for :func:`~exformer.hub.pretrained.load_model`.

    Raises:
        ValueError: If the recipe makes no run, the folder holds another run or is in use, the corpus is
            missing or not the one that the run began with, or training fails.
    """
    check_teachers(recipe)
    disable_malloc_trim()
    processes = Processes()
    run = _Run(
        recipe,
        folder=RunFolder(folder),
        processes=processes,
        device=processes.device or torch.device(device),
        progress=progress,
    )
    with run.lock():
        is_new = not run.folder.recipe.exists()
        try:
            run.train(data, resume=resume, on_measure=on_measure)
        except ValueError:
            if is_new and processes.is_main:
                run.folder.discard()
            raise
    return run.folder.model


class _Run:
    """A run of a recipe in a folder; its teachers are runs in folders inside."""

    def __init__(
        self,
        recipe: Recipe,
        *,
        folder: RunFolder,
        processes: Processes,
        device: torch.device,
        progress: bool,
    ) -> None:
        self.recipe, self.folder, self.processes, self.device = recipe, folder, processes, device
        self.progress = progress and processes.is_main

    def lock(self, *, wait: bool = False) -> AbstractContextManager[None]:
        """Keep other runs out of the folder."""
        return self.folder.lock(wait=wait) if self.processes.is_main else nullcontext()

    def train(
        self,
        data: Pairs | Text | None,
        *,
        resume: bool,
        on_measure: Callable[[Trainer], None] | None = None,
    ) -> None:
        """Take all steps that are left, and write the model."""
        recipe, folder, is_main = self.recipe, self.folder, self.processes.is_main
        with self.processes.main_first():  # the others find the tokenizer
            # Before the folder holds a run: there may be no network.
            data = CORPORA[recipe.corpus]() if data is None else data
            folder.open(recipe, resume=resume or not is_main)
            folder.check_input("data", data.hashes)
            title = "learning byte pairs" if self.progress else ""
            tokenizer = learn_tokenizer(recipe, data, folder.tokenizer, progress=title)
            folder.check_input("tokenizer", hashlib.sha256(folder.tokenizer.read_bytes()).hexdigest())
        if folder.is_finished(recipe):
            return
        set_seed(recipe.training.seed)
        task, spent = make_task(recipe, data, tokenizer), {}
        if recipe.teachers:
            # Teachers take hours: a mistake in the recipe must be found before.
            make_optimizers(task.model, recipe.training)
            data, spent = self._teach(data, tokenizer)
            if is_main:
                folder.check_input("teachers' translations", data.hashes)
            max_len = task.model.config.max_len
            task = replace(task, batches=training_batches(recipe, data, tokenizer, max_len=max_len))
        trainer = Trainer(
            task.model.to(self.device),
            task.batches,
            config=recipe.training,
            validation=task.validation,
            folder=folder.path,
            on_measure=on_measure,
            progress=recipe.name if self.progress else "",
        )
        trainer.fit(resume=True)
        if is_main:
            times = {recipe.name: trainer.clock.read(), **spent}
            _finish_run(recipe, task, data, trainer, folder, times=times, progress=self.progress)
        self.processes.wait()

    def _teach(self, data: Pairs | Text, tokenizer: Tokenizer) -> tuple[Pairs, _Times]:
        """Train the teachers; return the data with their translations, and how long each took."""
        seed, precision = self.recipe.seed_of_teachers, self.recipe.training.precision
        teachers = {
            name: find_recipe(name).with_training(seed=seed, precision=precision)
            for name in self.recipe.teachers
        }
        reads = {name: texts_for(teacher, data) for name, teacher in teachers.items()}
        answers: dict[str, tuple[str, list[str]]] = {}
        spent: _Times = {}
        for name, teacher in teachers.items():
            side, texts = reads[name]
            run = _Run(
                teacher,
                folder=self.folder.teacher(name),
                processes=self.processes,
                device=self.device,
                progress=self.progress,
            )
            # Two runs with one teacher may be started together: the second waits.
            with run.lock(wait=True):
                run.train(None, resume=True)
                with self.processes.main_first():  # the others read what it has written
                    found = ask_teacher(teacher, run.folder, texts, progress=name if self.progress else "")
            answers[name] = (side, found["texts"])
            training = load_model(run.folder.model).card["training"]
            spent[name] = {what: round(training[what] + found["time"][what], 3) for what in training}
        return add_answers(data, answers, tokenizer=tokenizer), spent


def _finish_run(
    recipe: Recipe,
    task: Task,
    data: Pairs | Text,
    trainer: Trainer,
    folder: RunFolder,
    *,
    times: Mapping[str, Mapping[str, float]],
    progress: bool = False,
) -> None:
    """Write the final model, the mean of the last checkpoints, and its card with all facts about it.

    Args:
        recipe: Recipe of the run.
        task: The trained task.
        data: The training data, with the translations of teachers.
        trainer: The Trainer of the run.
        folder: Folder of the run.
        times: Seconds of the run, and of each teacher, by the names of their recipes.
        progress: Show progress bars.
    """
    device = next(task.model.parameters()).device
    last = trainer.last_checkpoints()
    task.model.load_state_dict(average_weights(last, dtype=_FILE_TYPE))  # scored as it will be loaded
    task.model.eval().cpu()
    card = {
        "recipe": recipe.settings(),
        "data": data.hashes,
        "data_licenses": licenses(data.hashes),
        "seed": recipe.training.seed,
        "steps": trainer.step,
        "mean_of": [path.stem for path in last],
        "parameters": sum(p.numel() for p in task.model.parameters()),
        "training": {
            clock: round(sum(each[clock] for each in times.values()), 3) for clock in times[recipe.name]
        },
        **({"times": times} if recipe.teachers else {}),
        "machine": describe_machine(device),
        "scores": score(task.model, task.tokenizer, data, recipe, progress=progress),
        "history": trainer.history,
    }
    save_model(folder.model, task.model, task.tokenizer, card=card, dtype=_FILE_TYPE)
