"""The folder of a run: its recipe, the hashes of its inputs, its log, its checkpoints, the final model."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from exformer.hub.pretrained import load_model
from exformer.recipes.recipe import Recipe
from exformer.storage.files import check_name, read_json, remove_partial_files, write_json
from exformer.storage.upgrade import upgrade_recipe
from exformer.training.resume_check import differences


class RunFolder:
    """The files of a run; a :class:`~exformer.training.trainer.Trainer` writes the log and the checkpoints.

    Raises:
        ValueError: If the path is empty or not UTF-8.
    """

    def __init__(self, path: str | Path) -> None:
        check_name(path, what="a folder for the run")
        self.path = Path(path)
        self.recipe, self.tokenizer = self.path / "recipe.json", self.path / "tokenizer.json"
        self.inputs, self.translations = self.path / "inputs.json", self.path / "translations.json"
        self.log, self.checkpoints = self.path / "log.jsonl", self.path / "checkpoints"
        self.model = self.path / "model"

    @contextmanager
    def lock(self, *, wait: bool = False) -> Iterator[None]:
        """Keep other processes from training here; the system ends the lock of a process that is killed.

        Files that a killed process has written in part are removed.

        Args:
            wait: Wait for the end of a process that trains here already.

        Raises:
            ValueError: If one trains here already and ``wait`` is false, or the path is a file.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            raise ValueError(
                f"{self.path} is or lies in a file, or is a link that leads nowhere: expected a folder for "
                "the run"
            ) from error
        lock = FileLock(self.path / "run.lock", timeout=-1 if wait else 0)
        try:
            lock.acquire()
        except Timeout as error:
            raise ValueError(f"another process trains in {self.path}: wait for its end") from error
        try:
            for folder in (self.path, self.checkpoints, self.model):
                remove_partial_files(folder)
            yield
        finally:
            lock.release()

    def open(self, recipe: Recipe, *, resume: bool) -> None:
        """Make the folder, or check that it holds the run to resume.

        Args:
            recipe: Of the run. One that is resumed may have other settings of
                :data:`~exformer.training.resume_check.MAY_CHANGE`, such as more steps.
            resume: Resume the run in the folder, or begin if there is none.

        Raises:
            ValueError: If it holds a run and ``resume`` is false, a run of another recipe, or parts of one.
        """
        if self.recipe.exists():
            if not resume:
                raise ValueError(f"{self.path} holds a run: go on with --resume, or choose another folder")
            began = read_json(self.recipe, what="the recipe of a run")
            if other := differences(_flatten(began), _flatten(recipe.settings())):
                raise ValueError(
                    f"{self.path} holds a run of another recipe, which differs in {other}: choose another "
                    "folder"
                )
        elif any(path.exists() for path in vars(self).values() if path != self.path):
            raise ValueError(
                f"{self.path} holds parts of a run without its recipe.json: choose another folder, or empty "
                "this one"
            )
        self.path.mkdir(parents=True, exist_ok=True)
        write_json(self.recipe, recipe.settings(), indent=2)

    def read_recipe(self) -> Recipe:
        """Return the recipe of the run.

        Raises:
            ValueError: If it can't be read.
        """
        return Recipe.from_settings(read_json(self.recipe, what="the recipe of a run"))

    def check_input(self, name: str, found: str | Mapping[str, str]) -> None:
        """Note the hash of an input, or check that it is the one that the run began with.

        Args:
            name: Name of the input.
            found: Its SHA-256, or that of each part.

        Raises:
            ValueError: If it is another one.
        """
        known = read_json(self.inputs, what="the inputs of a run") if self.inputs.exists() else {}
        if name not in known:  # the run begins, or is older than these notes
            write_json(self.inputs, {**known, name: found}, indent=2)
        elif known[name] != found:
            raise ValueError(
                f"{self.path}: the {name} changed since the run began: bring back what was there, or choose "
                "another folder"
            )

    def is_finished(self, recipe: Recipe) -> bool:
        """Return whether the final model of a recipe is there and can be loaded."""
        try:
            found = load_model(self.model).card.get("recipe")
        except (ValueError, OSError):
            return False
        return isinstance(found, dict) and _flatten(found) == _flatten(recipe.settings())

    def discard(self) -> None:
        """Delete the files of a run that has taken no step, and the folder if nothing else is in it."""
        if self.log.exists() or (self.path / "teachers").exists() or not self.recipe.exists():
            return
        for path in (self.tokenizer, self.inputs, self.recipe, self.path / "run.lock"):
            with suppress(OSError):
                path.unlink()
        with suppress(OSError):
            self.path.rmdir()

    def teacher(self, name: str) -> "RunFolder":
        """Return the folder of the run that makes a teacher, inside this one.

        Args:
            name: The teacher's recipe.
        """
        return RunFolder(self.path / "teachers" / name)


def _flatten(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a recipe, its training and its model in one dictionary.

    Settings that are newer than the run have their defaults.
    """
    default, found = Recipe("", "").settings(), upgrade_recipe(settings)
    training, model = found.get("training", {}), found.get("model", {})
    if not isinstance(training, Mapping) or not isinstance(model, Mapping):
        raise ValueError(f"expected the settings of a recipe, got {settings!r}")
    flat = {**default, **found, **default["training"], **training, **model}
    return {name: value for name, value in flat.items() if name not in ("training", "model")}
