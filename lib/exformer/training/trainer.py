"""The Trainer: the training loop, and what a run of minutes or days needs around it."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from tqdm import tqdm

from exformer.data.sampler import BatchSampler, MicroBatch, split_across_processes
from exformer.models.unwrap import unwrap
from exformer.storage.files import check_name
from exformer.training.checkpoint import checkpoint_path, restore_run, save_checkpoint
from exformer.training.clock import Clock
from exformer.training.config import TrainingConfig
from exformer.training.distributed import ModelWithLoss, Processes
from exformer.training.gradient_accumulation import accumulate_gradients
from exformer.training.log import TrainingLog
from exformer.training.loop import (
    Losses,
    LossFn,
    check_parameters,
    default_loss,
    training_steps,
)
from exformer.training.optimizers import make_optimizers
from exformer.training.resume_check import describe_run
from exformer.training.seed import set_seed
from exformer.training.to_device import device_of
from exformer.training.validation import compare_with_best, is_patience_over, mean_loss


class Trainer:
    """The training loop with what a run of minutes or days needs around it.

    That is optimizers with schedules, clipping, gradient accumulation, validation, checkpoints, and several
    processes.

    The same settings give the same weights, however often a run is interrupted: the batch and the dropout
    of a step depend on the seed and the step alone. So a run that is resumed must have the settings and the
    first batch with which it began, or :meth:`fit` refuses it and says what differs. Batches from a
    generator are not compared, because a look would consume them. A few settings may change: ``steps`` and
    ``patience``, with which a finished run goes on; ``eval_interval`` and ``average_last``; and
    ``accumulate``, which changes only the rounding. With more steps, the new steps follow the longer
    schedule of the learning rate. The earlier steps followed the shorter one, so the weights are not those
    of a run that had as many steps from the beginning.

    Args:
        model: It is trained in place, on the device where it is; also the result of ``torch.compile``. Frozen
            parameters stay as they are.
        batches: A :class:`~exformer.data.sampler.BatchSampler`, or batches that are iterated over as often
            as the steps require, such as a ``DataLoader``, which ``config.seed`` shuffles.
        config: The settings; None: one pass over batches that have a length, else 1,000 steps.
        validation: Batches on which the loss is measured every ``config.eval_interval`` steps: micro-batches
            with their weights, the fractions of all tokens, or plain ones of equal weight. None: no
            validation.
        loss_fn: Computes the loss of the model on a batch; it must take ``label_smoothing`` if the config
            sets it. None: the model's own ``loss(batch)``, which every model of the library has, and yours
            may have.
        folder: Where the log and the checkpoints go; None: nowhere.
        on_measure: Called with the Trainer after each validation, in the main process, to show samples for
            example.
        progress: Title of a progress bar; if empty, there is none.

    Raises:
        ValueError: If the model has no loss and none is given, it lacks a part that the config names, or
            there is patience but no validation.

    >>> import torch
    >>> from exformer import DecoderLM, DecoderLMConfig, TextWindows, TrainingConfig
    >>> model = DecoderLM(DecoderLMConfig(7, d_model=8, n_heads=2, n_layers=1, max_len=6))
    >>> windows = TextWindows(torch.arange(70) % 6 + 1, width=6, batch_size=4, seed=0)
    >>> trainer = Trainer(model, windows, config=TrainingConfig(steps=20, lr=0.01, warmup=5))
    >>> losses = trainer.fit()
    >>> trainer.step, losses[-1] < losses[0]
    (20, True)
    """

    def __init__(
        self,
        model: nn.Module,
        batches: BatchSampler | Iterable[Any],
        *,
        config: TrainingConfig | None = None,
        validation: Iterable[Any] = (),
        loss_fn: LossFn | None = None,
        folder: str | Path | None = None,
        on_measure: Callable[["Trainer"], None] | None = None,
        progress: str = "",
    ) -> None:
        self.config = _default_config(batches) if config is None else config
        self.batches = batches
        self.model, self.validation = unwrap(model), list(validation)
        if self.config.patience and not self.validation:
            raise ValueError(
                f"a patience of {self.config.patience} validations needs validation batches, got none: give "
                "some, or patience=0"
            )
        self._compiled = model  # what a step calls; all else takes the model inside
        self.loss_fn = default_loss(self.model) if loss_fn is None else loss_fn
        if folder is not None:
            check_name(folder, what="a folder for the run")
        self.folder = None if folder is None else Path(folder)
        self.on_measure, self.progress = on_measure, progress
        self.processes = Processes()
        if self.processes.device is not None:
            model.to(self.processes.device)
        self.optimizers = make_optimizers(self.model, self.config)
        self.step = 0  # how many were taken
        self.history: list[dict[str, Any]] = []  # the lines of the log with a measurement
        self.clock = Clock({})
        self._unwritten: list[dict[str, Any]] = []  # lines of the log whose losses are still on the device
        self._notes: dict[str, Any] = {}  # of the last measurement: what a checkpoint holds beside weights
        self._run: dict[str, Any] = {}  # by what a checkpoint knows its run
        self._saved: list[int] = []  # steps of the checkpoints that are kept

    @property
    def checkpoints(self) -> Path:
        """The folder of the checkpoints."""
        if self.folder is None:
            raise ValueError("there are no checkpoints without a folder: give one to the Trainer")
        return self.folder / "checkpoints"

    @property
    def _log(self) -> TrainingLog:
        return TrainingLog(self.checkpoints.parent / "log.jsonl")

    @property
    def ended(self) -> bool:
        """Whether all steps are done, or ``patience`` validations have brought no improvement."""
        return self.step >= self.config.steps or is_patience_over(self._notes, self.config.patience)

    def fit(self, *, resume: bool = False) -> list[float]:
        """Take all remaining steps.

        Args:
            resume: Continue from the last checkpoint in the folder, or start if there is none.

        Returns:
            The loss before each step of this call.

        Raises:
            ValueError: If the folder has checkpoints and ``resume`` is false; if the run began with other
                settings or data, or took more steps than the config has; if a checkpoint is damaged or
                missing, the batches run out before the steps, or a loss or parameter becomes NaN or infinite.
        """
        self._restore(resume=resume)
        self._unwritten = []
        smoothing, losses = self.config.label_smoothing, Losses(first_step=self.step + 1)
        loss_fn = partial(self.loss_fn, label_smoothing=smoothing) if smoothing else self.loss_fn
        steps = training_steps(
            self.processes.wrap(ModelWithLoss(self._compiled, loss_fn=loss_fn)),
            islice(self._micro_batches(), 0 if self.ended else self.config.steps - self.step),
            loss_fn=lambda model, batch: model(batch),
            optimizers=self.optimizers,
            losses=losses,
            clip_norm=self.config.clip_norm,
            first_step=self.step + 1,
            backward=partial(accumulate_gradients, processes=self.processes, precision=self.config.precision),
        )
        shown = bool(self.progress) and self.processes.is_main
        bar = tqdm(steps, desc=self.progress, initial=self.step, total=self.config.steps, disable=not shown)
        for self.step in bar:
            self._after_step(losses)
            bar.set_postfix(loss=f"{losses.values[-1]:.2f}" if losses.values else "", refresh=False)
            if self.ended:
                break
        if not self.ended:
            raise ValueError(f"the batches ended after step {self.step} of {self.config.steps}: give more")
        return losses.values

    def validation_loss(self) -> float:
        """Return the loss on the validation batches, without label smoothing.

        Raises:
            ValueError: If the Trainer was given none.
        """
        if not self.validation:
            raise ValueError("there are no validation batches to measure on: give some to the Trainer")
        return mean_loss(self.model, self.validation, self.loss_fn)

    def last_checkpoints(self) -> list[Path]:
        """Return the last ``average_last`` checkpoints, of which a recipe takes the mean, oldest first.

        Raises:
            ValueError: If one is missing.
        """
        steps, interval = self.config.steps, self.config.eval_interval
        n_coming = 0 if self.ended else steps // interval - self.step // interval + (steps % interval > 0)
        n_needed = max(0, self.config.average_last - n_coming)
        needed = self._saved[max(0, len(self._saved) - n_needed) :]
        paths = [checkpoint_path(self.checkpoints, step) for step in needed]
        if missing := [str(path) for path in paths if not path.exists()]:
            raise ValueError(
                f"{', '.join(missing)} is missing: average_last wants the last {self.config.average_last} "
                "checkpoints; bring it back, or begin anew in another folder"
            )
        return paths

    def _restore(self, *, resume: bool) -> None:
        """Continue from the last checkpoint, if there is one; bring the log to the same step."""
        if self.folder is None and not resume:
            return
        self._run = describe_run(self.config, self.batches)
        optimizers = [optimizer for optimizer, _ in self.optimizers]
        state = restore_run(
            self.checkpoints, self._run, model=self.model, optimizers=optimizers, resume=resume
        )
        if state is not None:
            self.step, self._notes, self._saved = state.step, state.notes, state.saved
            self.last_checkpoints()  # all must be there
        self.clock = Clock(self._notes)
        if self.processes.is_main:
            self.checkpoints.mkdir(parents=True, exist_ok=True)
            lines = self._log.cut(done=self.step)
            self.history = [line for line in lines if "validation_loss" in line]

    def _micro_batches(self) -> Iterator[list[MicroBatch]]:
        """Yield this process's micro-batches; random numbers depend on the seed, the step and the process."""
        this, count = self.processes.index, self.processes.count
        if isinstance(self.batches, BatchSampler):
            parts = split_across_processes(
                self.batches,
                start_step=self.step,
                accumulate=self.config.accumulate,
                process=this,
                processes=count,
            )
        elif count * self.config.accumulate > 1:
            raise ValueError(
                "several processes, or accumulate, need batches that can be split: give a BatchSampler, as "
                "TextWindows or TranslationBatches"
            )
        else:
            batches = islice(self._plain_batches(self.batches), self.step, None)
            parts = ([MicroBatch(batch)] for batch in batches)
        for step, micro_batches in enumerate(parts, start=self.step + 1):
            self._seed(step, this)
            yield micro_batches

    def _plain_batches(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield batches without end, unless there are none (any more); all chance in them is seeded."""
        step, before = 1, 0
        while step > before:
            before = step
            self._seed(step, 0, 1)  # before a DataLoader shuffles
            for batch in batches:
                yield batch
                step += 1
                self._seed(step, 0, 1)

    def _seed(self, *numbers: int) -> None:
        """Seed all random number generators with the run's seed and some more numbers."""
        sequence = np.random.SeedSequence((self.config.seed, *numbers))
        set_seed(int(sequence.generate_state(1)[0]))

    def _after_step(self, losses: Losses) -> None:
        """Measure and save where it is due, and write the log."""
        line: dict[str, Any] = {"step": self.step, "loss": math.nan}  # the device may not have it yet
        due = self.config.is_measured(self.step)
        if due:
            losses.read()
            check_parameters(self.model, self.step)  # before they are saved
            self._notes = self._measure()
            line |= {name: value for name, value in self._notes.items() if name == "validation_loss"}
        if not self.processes.is_main:
            return
        self._unwritten.append(line | self.clock.read())
        if due and self.validation:
            self.history.append(self._unwritten[-1])
        if losses.all_read:
            self._write_log(losses.values)
        if due:
            self._save()
            if self.on_measure is not None:
                self.on_measure(self)

    def _write_log(self, losses: Sequence[float]) -> None:
        """Write the lines of the last steps, whose losses are now known."""
        lines, self._unwritten = self._unwritten, []
        for line, loss in zip(lines, losses[-len(lines) :], strict=True):
            line["loss"] = loss
            if self.folder is not None:
                self._log.append(line)

    def _save(self) -> None:
        """Write a checkpoint, if there is a folder."""
        if self.folder is None:
            return
        self._saved = [*self._saved, self.step][-self.config.average_last :]
        save_checkpoint(
            self.checkpoints,
            step=self.step,
            model=self.model,
            optimizers=[optimizer for optimizer, _ in self.optimizers],
            notes=self._notes | self.clock.read() | self._run | {"checkpoints": self._saved},
            keep=self.config.average_last,
        )

    def _measure(self) -> dict[str, Any]:
        """Measure the model on the validation set, and count the validations without improvement."""
        if not self.validation:
            return {}
        own = torch.tensor(self.validation_loss(), dtype=torch.float64, device=device_of(self.model))
        found = self.processes.sum(own).item() / self.processes.count  # all must come to the same end
        return compare_with_best(found, self._notes, step=self.step)


def _default_config(batches: BatchSampler | Iterable[Any]) -> TrainingConfig:
    steps = max(1, len(batches)) if isinstance(batches, Sized) else TrainingConfig.steps
    return TrainingConfig(steps=steps, warmup=max(1, min(100, steps // 10)))
