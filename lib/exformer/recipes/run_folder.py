"""The folder of a run: its recipe, what it is made from, its log, its checkpoints, the model at the end."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from exformer.recipes.recipe import Recipe
from exformer.storage.files import read_json, replace_file, sweep_parts


class RunFolder:
    """Name the files of a run.

    A :class:`~exformer.training.trainer.Trainer` writes the log and the checkpoints.

    Raises:
        ValueError: If the path is empty.
    """

    def __init__(self, path: str | Path) -> None:
        if path == "":
            raise ValueError("expected the name of a folder for the run, got an empty one")
        self.path = Path(path)
        self.recipe, self.tokenizer = self.path / "recipe.json", self.path / "tokenizer.json"
        self.inputs, self.translations = self.path / "inputs.json", self.path / "translations.json"
        self.log, self.checkpoints = self.path / "log.jsonl", self.path / "checkpoints"
        self.model = self.path / "model"

    @contextmanager
    def alone(self, *, wait: bool = False) -> Iterator[None]:
        """Keep other processes from running here; the system ends it where this process is killed.

        What a killed process has written in part is deleted.

        Args:
            wait: For the end of one that runs here already.

        Raises:
            ValueError: If one runs here already, and its end is not waited for.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.path / "run.lock", timeout=-1 if wait else 0)
        try:
            lock.acquire()
        except Timeout as error:
            raise ValueError(f"another process trains in {self.path}: wait for its end") from error
        try:
            for folder in (self.path, self.checkpoints, self.model):
                sweep_parts(folder)
            yield
        finally:
            lock.release()

    def open(self, recipe: Recipe, *, resume: bool) -> None:
        """Make the folder, or look whether it holds the run that is to go on.

        Args:
            recipe: Of the run.
            resume: Go on with what is there; where nothing is, begin.

        Raises:
            ValueError: If it holds a run that is not to go on, one of another recipe, or one without recipe.
        """
        settings, defaults = (
            json.loads(json.dumps(each.settings())) for each in (recipe, Recipe(recipe.name, recipe.corpus))
        )
        if self.recipe.exists():
            if not resume:
                raise ValueError(f"{self.path} holds a run: go on with --resume, or choose another folder")
            # A setting that is newer than the run has its default.
            found = defaults | read_json(self.recipe, what="the recipe of a run")
            other = sorted(name for name in settings | found if settings.get(name) != found.get(name))
            if other:
                raise ValueError(
                    f"{self.path} holds a run of another recipe, which differs in {', '.join(other)}: "
                    "choose another folder"
                )
        elif any(path.exists() for path in vars(self).values() if path != self.path):
            raise ValueError(
                f"{self.path} holds parts of a run without its recipe.json: choose another folder, or empty "
                "this one"
            )
        self.path.mkdir(parents=True, exist_ok=True)
        replace_file(self.recipe, (json.dumps(settings, indent=2) + "\n").encode())

    def check_input(self, name: str, found: str | Mapping[str, str]) -> None:
        """Note what the run is made from, or refuse it if it is not what the run began with.

        Args:
            name: Of the input.
            found: Its SHA-256, or that of each part.

        Raises:
            ValueError: If another one was noted.
        """
        known = read_json(self.inputs, what="the inputs of a run") if self.inputs.exists() else {}
        if name not in known:  # the run begins, or is older than these notes
            replace_file(self.inputs, (json.dumps({**known, name: found}, indent=2) + "\n").encode())
        elif known[name] != found:
            raise ValueError(
                f"{self.path}: the {name} changed since the run began: bring back what was there, or choose "
                "another folder"
            )

    def is_finished(self) -> bool:
        """Say whether the final model is there; its card is written last."""
        return (self.model / "model.json").exists()

    def teacher(self, name: str) -> "RunFolder":
        """Return the folder of the run that makes a teacher, inside this one.

        Args:
            name: The teacher's recipe.
        """
        return RunFolder(self.path / "teachers" / name)
