"""The models that come with the library: their names and folders, found without loading PyTorch."""

from pathlib import Path

from exformer.storage.files import read_json

#: The file of the weights in a model's folder; the card has the same name with ``.json``.
WEIGHTS = "model.safetensors"
_SHIPPED = Path(__file__).parents[1] / "shipped"


def shipped_models(*, kind: str | None = None) -> dict[str, Path]:
    """Return the folders of the models that come with the library, by name.

    Args:
        kind: ``"DecoderLM"`` for language models only, ``"EncoderDecoder"`` for translators only.

    >>> list(shipped_models())
    ['multi30k-de-en', 'multi30k-en-de', 'shakespeare-bpe', 'shakespeare-char']
    >>> list(shipped_models(kind="DecoderLM"))
    ['shakespeare-bpe', 'shakespeare-char']
    """
    folders = {path.name: path for path in sorted(_SHIPPED.glob("*")) if (path / WEIGHTS).exists()}
    return {name: path for name, path in folders.items() if kind is None or _kind(path) == kind}


def find_model(name_or_folder: str | Path) -> Path:
    """Return the folder of a model: one of ours, or else one that comes with the library.

    Raises:
        ValueError: If there is none; where the folder is that of a training run, the message names its model.
    """
    names = ", ".join(shipped_models())
    if name_or_folder == "":  # a path would take it for the folder that we are in
        raise ValueError(f"expected a folder or one of {names}, got an empty name")
    folder = Path(name_or_folder)
    if _holds_model(folder):
        return folder
    if _holds_model(folder / "model"):
        raise ValueError(f"{folder} is the folder of a run: its model is {folder / 'model'}")
    if (found := shipped_models().get(str(folder))) is not None:  # a path, so that name/ is found, too
        return found
    raise ValueError(f"there is no model {folder}: expected a folder with {WEIGHTS}, or one of {names}")


def _holds_model(folder: Path) -> bool:
    """Return whether a folder holds a model, complete or not: the loader reports a missing file."""
    weights = folder / WEIGHTS
    return weights.exists() or weights.with_suffix(".json").exists()


def _kind(folder: Path) -> str:
    return read_json((folder / WEIGHTS).with_suffix(".json"), what="a card")["kind"]
