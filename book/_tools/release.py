"""Build what readers install, into _build/release: two wheels, and one file that starts the lessons.

    python book/_tools/release.py           # for the branch `published`
    python book/_tools/release.py v0.1.0    # for a release: with archives and checksums; the tag is checked

``uv run`` or ``pipx run`` on ``lessons.py``, a file or its address, installs both wheels and opens lesson 01.
"""

import hashlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book" / "_ext"))

from repo_links import PUBLISHED, find_repository  # noqa: E402

FOLDER = ROOT / "_build" / "release"
PAGES = ROOT / "_build" / "html"
#: What the image of a JupyterHub is built from, besides the wheels.
HUB = ("book/hub/Dockerfile", "requirements.txt")
#: Where a version is written, and how.
VERSIONS = {
    "lib/exformer/__init__.py": r'^__version__ = "(.+)"$',
    "lib/exformer_lessons/__init__.py": r'^__version__ = "(.+)"$',
    "CITATION.cff": r"^version: (.+)$",
    "CHANGELOG.md": r"^## ([^\s,]+)",
}
LESSONS = '''\
# /// script
# requires-python = ">=3.11"
# dependencies = [
#     "exformer @ {exformer}",
#     "exformer-lessons[lab] @ {exformer_lessons}",
# ]
# ///
"""The lessons of The Executable Transformer: write them into a folder of yours, open the first in JupyterLab.

    uv run {base}/lessons.py
    uv run {base}/lessons.py doctor
    uv run {base}/lessons.py start 05
    uv run {base}/lessons.py claim A18
"""

import sys

from exformer_lessons.__main__ import run

if __name__ == "__main__":
    sys.exit(run(sys.argv[1:] or ["start"]))
'''


def check_version(tag, root=ROOT):
    """Refuse a tag that is not the version which the files name."""
    found = {}
    for name, pattern in VERSIONS.items():
        written = re.search(pattern, (root / name).read_text(encoding="utf-8"), flags=re.M)
        found[name] = f"v{written[1]}" if written else "none"
    if set(found.values()) != {tag}:
        where = ", ".join(f"{version} in {name}" for name, version in found.items())
        raise ValueError(
            f"expected the tag {tag} to be the version, got {where}: change the files or the tag"
        )


def write_lessons(folder, base):
    """Write ``lessons.py``, which installs a folder's wheels from an address, each held to its checksum."""
    wheels = {path.name.partition("-")[0]: path for path in sorted(folder.glob("*.whl"))}
    addresses = {name: f"{base}/{path.name}#sha256={digest(path)}" for name, path in wheels.items()}
    path = folder / "lessons.py"
    path.write_text(LESSONS.format(base=base, **addresses), encoding="utf-8", newline="\n")
    return path


def digest(path):
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def build(tag=None, folder=FOLDER):
    """Build the wheels and ``lessons.py``, for a tag also archives; return where they will be found.

    Where the repository is not known, they are found in the folder itself.
    """
    if tag:
        check_version(tag)
    url, _ = find_repository(ROOT)
    base = folder.as_uri()
    if url:
        base = f"{url}/releases/download/{tag}" if tag else f"{url}/raw/{PUBLISHED}"
    shutil.rmtree(folder, ignore_errors=True)
    for package in ("exformer", "exformer_lessons"):
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
        subprocess.run(command, cwd=ROOT / "lib" / package, check=True)
    write_lessons(folder, base)
    if tag:
        shutil.copy(PAGES / "_static" / "notebooks.zip", folder / "notebooks.zip")
        shutil.make_archive(str(folder / "book"), "zip", PAGES)
        for name in HUB:
            shutil.copy(ROOT / name, folder)
        sums = [f"{digest(path)}  {path.name}\n" for path in sorted(folder.iterdir())]
        (folder / "SHA256SUMS").write_text("".join(sums), encoding="utf-8", newline="\n")
    return base


if __name__ == "__main__":
    print(build(*sys.argv[1:]))
