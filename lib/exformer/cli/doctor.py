"""``exformer doctor``: what an issue report should say about the machine and the installation."""

import argparse
import os
import platform
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from time import perf_counter

import torch

import exformer
from exformer.corpora.real.download import cache_folder
from exformer.corpora.real.manifest import FILES
from exformer.generation.generate import generate
from exformer.hub.pretrained import load_model
from exformer.hub.shipped import shipped_models
from exformer.recipes.machine_facts import processor_name

#: Greedy continuations of the shipped language models: what every machine should give again.
CONTINUATIONS = {
    "shakespeare-bpe": ("ROMEO:\n", "I'll tell thee, I am a king, and I'll not stay."),
    "shakespeare-char": ("ROMEO:\n", "Why, then the sent of the state of the s"),
}
_INSTRUCTIONS = ("avx2", "avx512f", "avx512_bf16", "amx_bf16", "asimd", "sve", "bf16")
_SETTINGS = ("OMP_NUM_THREADS", "ATEN_CPU_CAPABILITY", "EXFORMER_DATA", "CUDA_VISIBLE_DEVICES")
_NAME = re.compile(r"[A-Za-z0-9._-]+")


def report_environment(args: argparse.Namespace) -> None:
    """Print the report; what deserves a look comes last."""
    conclude(describe())


def describe() -> list[str]:
    """Print what is there, part by part; return what deserves a look."""
    problems: list[str] = []
    for title, lines in (
        ("System", _system()),
        ("Packages", _packages(problems)),
        ("PyTorch", _pytorch(problems)),
        ("Data", _data(problems)),
        ("Shipped models", _models(problems)),
    ):
        print(title)
        for line in lines:
            print(f"  {line}", flush=True)
    return problems


def conclude(problems: Sequence[str]) -> None:
    """Print what deserves a look, or that nothing does."""
    print("Problems" if problems else "No problems found.")
    for problem in problems:
        print(f"  - {problem}")


def _system() -> Iterator[str]:
    yield f"{platform.system()} {platform.release()}, {platform.machine()}"
    yield f"processor: {processor_name()}, {os.cpu_count()} logical cores{_memory()}"
    if found := _instructions():
        yield f"instruction sets: {' '.join(found)}"
    virtual = "in a virtual environment" if sys.prefix != sys.base_prefix else "not in a virtual environment"
    yield f"Python {platform.python_version()} ({platform.python_implementation()}), {virtual}"
    for name in _SETTINGS:
        if name in os.environ:
            yield f"{name}={_shorten(os.environ[name])}"


def _memory() -> str:
    try:
        n_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf
        return ""
    return f", {n_bytes / 2**30:.1f} GiB of memory"


def _instructions() -> list[str]:
    """Return the vector instructions that the processor has; nothing is known outside Linux."""
    info = Path("/proc/cpuinfo")
    words = set(info.read_text(encoding="utf-8").split()) if info.is_file() else set()
    return [name for name in _INSTRUCTIONS if name in words]


def _packages(problems: list[str]) -> Iterator[str]:
    here = _shorten(str(Path(exformer.__file__).parent))
    yield f"exformer {_version('exformer') or 'not installed'}, from {here}"
    if _version("exformer") is None:
        problems.append("exformer is imported from a folder but not installed: pip install -e . in the clone")
        return
    needed, extras = _requirements(requires("exformer") or [])
    yield ", ".join(f"{name} {_version(name) or 'missing'}" for name in needed)
    missing = [name for name in needed if _version(name) is None]
    if missing:
        problems.append(f"missing: pip install {' '.join(missing)}")
    for extra, names in extras.items():
        found = ", ".join(f"{name} {_version(name) or 'not installed'}" for name in names)
        yield f"extra {extra}: {found}"


def _requirements(lines: Sequence[str]) -> tuple[list[str], Mapping[str, list[str]]]:
    """Return the names of the packages that are needed, and of those for each extra."""
    needed: list[str] = []
    extras: dict[str, list[str]] = {}
    for line in lines:
        name = _NAME.match(line)
        extra = re.search(r"""extra == ["'](.+?)["']""", line)
        (extras.setdefault(extra[1], []) if extra else needed).append(name[0] if name else line)
    return needed, extras


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _pytorch(problems: list[str]) -> Iterator[str]:
    used = torch.backends.cpu.get_cpu_capability()
    yield f"PyTorch {torch.__version__} uses {used}, {torch.get_num_threads()} threads"
    cuda = [torch.cuda.get_device_name(n) for n in range(torch.cuda.device_count())]
    mps = "yes" if torch.backends.mps.is_available() else "no"
    yield f"CUDA: {', '.join(cuda) or 'no device'}; MPS: {mps}"
    if used == "DEFAULT" and platform.machine().lower() in ("x86_64", "amd64"):
        problems.append("PyTorch uses no vector instructions, so that it is slower and rounds otherwise: ")
        problems[-1] += "look at ATEN_CPU_CAPABILITY, or at the settings of the virtual machine"
    cores = os.cpu_count() or 1
    if torch.get_num_threads() > cores:
        problems.append(
            f"PyTorch has {torch.get_num_threads()} threads for {cores} cores: set OMP_NUM_THREADS={cores}"
        )


def _data(problems: list[str]) -> Iterator[str]:
    own = os.environ.get("EXFORMER_DATA")
    folders = {"EXFORMER_DATA": Path(own)} if own and os.path.isdir(own) else {}
    try:
        folders["cache"] = cache_folder()
    except ValueError as error:
        problems.append(str(error))
    for title, folder in folders.items():
        there = [file for name, file in FILES.items() if (folder / name).is_file()]
        yield f"{title}, {_shorten(str(folder))}: {len(there)} of {len(FILES)} files"
        cut = [file.name for file in there if (folder / file.name).stat().st_size != file.n_bytes]
        if cut:
            names = ", ".join(cut)
            problems.append(f"not as long as they should be: {names}: remove them, they are fetched again")
    if own and not os.path.isdir(own):  # also where the name is too long for the system
        problems.append(f"EXFORMER_DATA names no folder: {_shorten(own)}")


def _models(problems: list[str]) -> Iterator[str]:
    for name in shipped_models():
        begun = perf_counter()
        try:
            model, tokenizer, _ = load_model(name)
        except (ValueError, OSError) as error:
            yield f"{name}: cannot be loaded"
            problems.append(f"{name}: {error}")
            continue
        loaded = f"{name}: loaded in {perf_counter() - begun:.2f} s"
        if name not in CONTINUATIONS:
            yield loaded
            continue
        prompt, expected = CONTINUATIONS[name]
        begun = perf_counter()
        found = str(generate(model, tokenizer, prompt, max_new_tokens=40, temperature=0.0))
        seconds = perf_counter() - begun
        same = found.startswith(expected)
        yield f"{loaded}, 40 tokens in {seconds:.2f} s, {'as expected' if same else 'NOT as expected'}"
        if not same:
            got = found[: len(expected)]
            problems.append(f"{name} continues {prompt!r} with {got!r}, expected {expected!r}")


def _shorten(path: str) -> str:
    """Write the user's home as ~, and at most 300 characters: a report is often posted."""
    home = str(Path.home())
    path = "~" + path[len(home) :] if path == home or path.startswith(home + os.sep) else path
    return path if len(path) <= 300 else f"{path[:300]}…"
