"""Run a JupyterHub whose students may not write the installation, and do a lesson as each of them.

    ENVIRONMENT/bin/python book/_tools/rehearse_hub.py [STUDENT …] [--image NAME] [--json FILE]

The environment has both wheels, JupyterLab and JupyterHub; ``configurable-http-proxy`` is on the path. Run by
root, students are users of the system; otherwise they are names, each with a new home, or volume.
"""

import argparse
import asyncio
import json
import os
import platform
import secrets
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from urllib.parse import quote

from jupyter_client.session import Session
from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect

from exformer_lessons.handout import own_folder
from exformer_lessons.lab import _to_first_exercise
from exformer_lessons.notebook import find, readable_folder

HERE = Path(sys.executable).parent
RIGHTS = ["admin:users", "admin:servers", "access:servers"]
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
CONTAINER = """exec docker run --rm --network=host --volume="lessons-$USER:/home/jovyan" \
$(env | sed -n 's/^\\(JUPYTERHUB_[A-Z_]*\\)=.*/--env=\\1/p') "$0" jupyterhub-singleuser"""
#: Programs for a student's kernel: what doctor says, what may be written, megabytes of kernel and server.
DOCTOR = (
    "import subprocess as s\ns.run(['exformer-lessons', 'doctor'], capture_output=True, text=True).stdout"
)
WRITABLE = (
    "import os, exformer, torch\n[p for m in (exformer, torch) for p in m.__path__ if os.access(p, os.W_OK)]"
)
MEGABYTES = r"""import os, re
peak = r"VmHWM:\s+(\d+)"
[int(re.search(peak, open(f"/proc/{p}/status").read())[1]) // 1024 for p in ("self", os.getppid())]"""


class Hub:
    """A hub that nobody can log in to; its only service starts servers and uses them."""

    def __init__(self, folder, image=None, **more):
        free = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
        self.site, inner, proxy = (f"http://127.0.0.1:{each.getsockname()[1]}" for each in free)
        token = secrets.token_hex(32)
        self.rights = {"Authorization": f"token {token}"}
        settings = {
            "JupyterHub.bind_url": self.site,
            "JupyterHub.hub_bind_url": inner,
            "ConfigurableHTTPProxy.api_url": proxy,
            "JupyterHub.authenticator_class": "null",
            "JupyterHub.services": [{"name": "rehearsal", "api_token": token}],
            "JupyterHub.load_roles": [{"name": "all", "scopes": RIGHTS, "services": ["rehearsal"]}],
            "JupyterHub.spawner_class": "simple" if image or os.geteuid() else "localprocess",
            "SimpleLocalProcessSpawner.home_dir_template": f"{folder}/homes/{{username}}",
            "Spawner.cmd": ["sh", "-c", CONTAINER, image]
            if image
            else [str(HERE / "exformer-lessons"), "hub"],
            "Spawner.http_timeout": 120,
        }
        written = [f"c.{key} = {value!r}\n" for key, value in (settings | more).items()]
        (folder / "config.py").write_text("".join(written), encoding="utf-8")
        for each in free:
            each.close()
        path = f"{HERE}{os.pathsep}{os.environ['PATH']}"
        start = [sys.executable, "-m", "jupyterhub", "-f", "config.py"]
        with (folder / "log").open("w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                start, cwd=folder, env=os.environ | {"PATH": path}, stdout=log, stderr=log
            )
        wait_until(lambda: self.ask("GET", "/hub/api/"))

    def ask(self, method, path, content=None):
        """Ask the hub, or a server through it; return its answer, nothing while there is none to GET."""
        data = None if content is None else json.dumps(content).encode()
        try:
            with DIRECT.open(
                urllib.request.Request(self.site + path, data, self.rights, method=method)
            ) as got:
                return json.loads(got.read() or "true")
        except OSError:
            if method == "GET" and self.process.poll() is None:
                return None
            raise

    def start(self, student):
        """Start a student's server; return its address."""
        self.ask("POST", f"/hub/api/users/{quote(student)}/server")
        user = f"/hub/api/users/{quote(student)}"
        return wait_until(
            lambda: [s["url"] for s in self.ask("GET", user)["servers"].values() if s["ready"]]
        )[0]

    def stop(self, student):
        """Stop a student's server, and with it the kernels."""
        self.ask("DELETE", f"/hub/api/users/{quote(student)}/server")
        wait_until(lambda: not self.ask("GET", f"/hub/api/users/{quote(student)}")["servers"])

    def open(self, server, lesson):
        """Open a lesson in a kernel of its own; return its notebook, its address and its kernel's."""
        path = f"{own_folder().name}/{lesson.name}"
        asked = {"path": path, "name": lesson.name, "type": "notebook", "kernel": {"name": "python3"}}
        kernel = self.ask("POST", f"{server}api/sessions", asked)["kernel"]["id"]
        address = f"{server}api/contents/{path}"
        return self.ask("GET", address)["content"], address, f"{server}api/kernels/{kernel}/channels"

    def run(self, kernel, cells):
        """Run cells; return what each writes or gives, as text."""
        return asyncio.run(self._run(self.site.replace("http", "ws", 1) + kernel, cells))

    async def _run(self, address, cells):
        line = await websocket_connect(HTTPRequest(address, headers=self.rights), max_message_size=2**28)
        said = [await self._answer(line, Session().msg("execute_request", {"code": code})) for code in cells]
        line.close()
        return said

    async def _answer(self, line, message):
        await line.write_message(json.dumps(message | {"channel": "shell"}, default=str))
        text, content = "", {}
        while content.get("execution_state") != "idle":
            got = json.loads(await line.read_message())
            content = got["content"] if got["parent_header"].get("msg_id") == message["msg_id"] else {}
            expect("traceback" not in content, "\n".join(content.get("traceback", [])))
            text += content.get("text", "") + content.get("data", {}).get("text/plain", "")
        return text


def rehearse(hub, student, lessons):
    """Do what a student does, and what a course must be able to rely on; return seconds and megabytes."""
    first, second = find([lessons[0]], readable_folder())[0], find([lessons[1]], readable_folder())[0]
    hub.ask("POST", f"/hub/api/users/{quote(student)}")
    server, started = timed(hub.start, student)
    notebook, address, kernel = hub.open(server, first)
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    _, lasted = timed(hub.run, kernel, [cell["source"] for cell in code])
    exercise = next(cell for cell in code if "exercise" in cell["metadata"].get("tags", []))
    exercise["source"] += "\n\n\n" + _to_first_exercise(json.loads(first.read_text(encoding="utf-8")))[1]
    right, writable, doctor = hub.run(kernel, [exercise["source"], WRITABLE, DOCTOR])
    expect(right.startswith("Right"), right)
    expect(writable == "[]", f"{student} may write {writable}")
    expect("No problems found" in doctor, doctor)
    hub.ask("PUT", address, {"type": "notebook", "format": "json", "content": notebook})
    other, _, beside = hub.open(server, second)
    hub.run(beside, [cell["source"] for cell in other["cells"] if cell["cell_type"] == "code"])
    (own, served), (more, _) = (json.loads(hub.run(each, [MEGABYTES])[0]) for each in (kernel, beside))
    hub.stop(student)
    hub.start(student)
    kept = [cell["source"] for cell in hub.ask("GET", address)["content"]["cells"]]
    expect(kept == [cell["source"] for cell in notebook["cells"]], "what the student wrote is lost")
    hub.stop(student)
    megabytes = {"server": served, **dict(zip(lessons, (own, more), strict=True))}
    return {"student": student, "seconds": {"start": started, lessons[0]: lasted}, "megabytes": megabytes}


def timed(do, *words):
    """Return what a function returns, and its seconds."""
    begun = time.perf_counter()
    return do(*words), round(time.perf_counter() - begun)


def wait_until(holds, seconds=180):
    """Ask twice a second until something holds; return it."""
    for _ in range(2 * seconds):
        if found := holds():
            return found
        time.sleep(0.5)
    raise TimeoutError(f"not after {seconds} s")


def expect(holds, otherwise):
    """Stop the rehearsal unless something holds."""
    if not holds:
        raise RuntimeError(otherwise)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "students", nargs="*", default=["ada", "grace.h"], help="users of the system, or names"
    )
    parser.add_argument("--lessons", nargs=2, default=["01", "19"], help="which are open at once")
    parser.add_argument("--image", help="run each server in a container of it")
    parser.add_argument("--json", type=Path, help="where seconds and megabytes are written")
    asked = parser.parse_args()
    closed = [folder for folder in Path(sys.executable).resolve().parents if not folder.stat().st_mode & 1]
    if closed and not asked.image and not os.geteuid():
        raise SystemExit(f"students may not enter {closed[0]}: make hub PYTHON=… with one that they can run")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as new:
        hub = Hub(Path(new), asked.image)
        try:
            found = [rehearse(hub, student, asked.lessons) for student in asked.students]
        except BaseException:
            print(Path(new, "log").read_text(encoding="utf-8"), file=sys.stderr)
            raise
        finally:
            hub.process.terminate()
            hub.process.wait(60)
    system = f"{platform.system()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    text = json.dumps({"system": system, "image": asked.image, "students": found}, indent=1) + "\n"
    print(text)
    if asked.json:
        asked.json.write_text(text, encoding="utf-8", newline="\n")
