"""Install a release as a student does, in a new home, without a cache; check it, open the first lesson.

    python book/_tools/rehearse.py DIST [--wheelhouse FOLDER]

The workflow for a release runs this on three systems. With a wheelhouse (``pip download`` of what the wheels
need) nothing comes from a network. Needs uv.
"""

import argparse
import json
import os
import platform
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from release import write_lessons

#: What a student's machine does not have: what chooses a Python, an index or a folder of packages.
DROPPED = ("PYTHON", "VIRTUAL_ENV", "UV_", "PIP", "JUPYTER", "XDG_")
HOME = ("HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA")


def rehearse(dist, home, wheelhouse=None, words=("doctor", "doctor", "claim A18")):
    """Do all steps in a new home; return the words of each and its seconds."""
    dist = shutil.copytree(dist, home / "release")
    lessons = write_lessons(dist, dist.as_uri())
    settings = {name: value for name, value in os.environ.items() if not name.upper().startswith(DROPPED)}
    settings |= dict.fromkeys(HOME, str(home))
    if wheelhouse:
        settings |= {"UV_OFFLINE": "1", "UV_NO_INDEX": "1", "UV_FIND_LINKS": str(wheelhouse.resolve())}
        settings |= {"UV_PYTHON": sys.executable}
    uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or "uv"
    command = [uv, "run", "--no-project", str(lessons)]
    steps = [step(command, each, home, settings) for each in words]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = [f"--ServerApp.port={port}", "--IdentityProvider.token=rehearsal", "--allow-root"]
    opened = [*command, "start", "--no-browser", "--options", *options]
    begun = time.perf_counter()
    with subprocess.Popen(opened, cwd=home, env=settings) as server:
        try:
            wait_for(f"http://127.0.0.1:{port}/?token=rehearsal", server)
            answered = time.perf_counter()
            ask = f"http://127.0.0.1:{port}/api/shutdown?token=rehearsal"
            urllib.request.urlopen(urllib.request.Request(ask, method="POST"), timeout=30).close()
        except BaseException:
            server.kill()
            raise
    steps.append({"words": "start", "seconds": round(answered - begun)})
    steps[0]["words"] += ", which installs all"
    return steps


def step(command, words, home, settings):
    """Run a command that must succeed; return its words and its seconds."""
    begun = time.perf_counter()
    subprocess.run([*command, *words.split()], cwd=home, env=settings, check=True)
    return {"words": words, "seconds": round(time.perf_counter() - begun)}


def wait_for(address, server, seconds=120):
    """Wait until JupyterLab answers and opens lesson 01."""
    last = None
    for _ in range(seconds * 2):
        if server.poll() is not None:
            raise RuntimeError(f"JupyterLab ended with status {server.returncode} before it answered")
        try:
            with urllib.request.urlopen(address, timeout=5) as answer:
                if answer.geturl().partition("?")[0].endswith("/lab/tree/01_recurrence.ipynb"):
                    return
                last = f"it opens {answer.geturl()}"
        except OSError as error:
            last = error
        time.sleep(0.5)
    raise RuntimeError(f"JupyterLab does not answer after {seconds} s: {last}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("dist", type=Path, help="a folder with the wheels")
    parser.add_argument("--wheelhouse", type=Path, help="a folder with all that they need")
    parser.add_argument("--all", action="store_true", help="run all lessons, not lesson 01 alone")
    parser.add_argument("--json", type=Path, help="where the seconds are written")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as new:
        words = ("doctor", f"doctor{' --all' * asked.all}", "claim A18")
        steps = rehearse(asked.dist.resolve(), Path(new), asked.wheelhouse, words)
    found = {
        "system": f"{platform.system()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "steps": steps,
        "not_yet_run": ["Windows", "macOS", "Colab, by the button of a lesson"],
    }
    text = json.dumps(found, indent=1) + "\n"
    print(text)
    if asked.json:
        asked.json.write_text(text, encoding="utf-8", newline="\n")
