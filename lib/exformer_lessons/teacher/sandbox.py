"""A sandbox of the system: no network, no files but Python's, which are read-only, a small temporary home.

Bubblewrap makes it where it is installed, else ``unshare`` of util-linux; root becomes a user without rights.
"""

import os
import shlex
import shutil
import site
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import exformer
import exformer_lessons

#: Size of the temporary home.
HOME_BYTES = 16_000_000
#: All that a program in the sandbox sees of the environment.
ENVIRONMENT = {
    "PATH": "/usr/bin:/bin:/usr/sbin:/sbin",
    "HOME": "/tmp",
    "LANG": "C.UTF-8",
    "OMP_NUM_THREADS": "1",
    "MPLBACKEND": "agg",
    "PYTHONDONTWRITEBYTECODE": "1",
}
#: What must hold in a sandbox: a file of ours is not there, no network but its own, no right of root.
_CHECK = (
    "import os, socket, sys; sys.exit(os.path.exists(sys.argv[1]) or len(socket.if_nameindex()) > 1 "
    "or os.geteuid() == 0 or os.access('/', os.W_OK) or os.access('/usr', os.W_OK))"
)
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64")
_HELP = (
    "expected a sandbox of Linux, because this runs what strangers wrote: install bubblewrap "
    "(apt install bubblewrap) or allow user namespaces (on Ubuntu: sudo sysctl -w "
    "kernel.apparmor_restrict_unprivileged_userns=0); on macOS and Windows use WSL 2 or a virtual machine; "
    "got "
)


class EndedError(BaseException):
    """The sandbox has ended before it answered. Graders catch any Exception, so it is none."""


def kinds() -> list[str]:
    """Return the sandboxes to try, the best first."""
    if not sys.platform.startswith("linux"):
        return []
    if os.geteuid() == 0:  # bubblewrap would keep the user root, for whom the kernel counts no processes
        return ["unshare"] if shutil.which("unshare") and shutil.which("setpriv") else []
    return [name for name in ("bwrap", "unshare") if shutil.which(name)]


def find() -> str:
    """Return the name of a sandbox that works here.

    Raises:
        ValueError: If there is none; nothing is run then.
    """
    tried = []
    for kind in kinds():
        with (
            tempfile.NamedTemporaryFile() as hidden,
            opened(["-I", "-c", _CHECK, hidden.name], kind=kind) as process,
        ):
            try:
                _, said = process.communicate(timeout=20)
            except subprocess.TimeoutExpired:
                said = b"no answer in 20 seconds"
            if process.returncode == 0:
                return kind
        tried.append(f"{kind}: {' '.join(said.decode(errors='replace').split())[:200]}")
    raise ValueError(_HELP + ("; ".join(tried) or f"{sys.platform} without bwrap and unshare"))


@contextmanager
def opened(arguments: list[str], *, kind: str) -> Iterator[subprocess.Popen]:
    """Run Python in a sandbox, and end all that runs in it.

    Args:
        arguments: What Python gets, after its own name.
        kind: The sandbox, as :func:`find` names it.
    """
    with tempfile.TemporaryDirectory() as root:
        make = _bubblewrap if kind == "bwrap" else _unshare
        command = make([sys.executable, *arguments], root)
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = subprocess.Popen(command, env=ENVIRONMENT, start_new_session=True, **pipes)
        try:
            yield process
        finally:
            process.kill()  # with it dies the first process of the sandbox, and with that all others
            process.wait()
            for pipe in filter(None, (process.stdin, process.stdout, process.stderr)):
                with suppress(OSError):  # what was not sent yet has no reader anymore
                    pipe.close()


def search_path() -> list[str]:
    """Return where Python in the sandbox finds packages."""
    found = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    return [*found, *(str(folder.parent) for folder in _packages())]


def _packages() -> list[Path]:
    return [Path(str(package.__file__)).resolve().parent for package in (exformer, exformer_lessons)]


def _shown() -> list[str]:
    """Return the folders that can be read in the sandbox, none inside another."""
    paths = {"/usr", sys.prefix, sys.base_prefix, *search_path()[:-2], *site.getsitepackages()}
    paths |= {str(path) for path in (*_packages(), *map(Path, _SYSTEM)) if path.is_dir()}
    real = sorted(path for path in paths if Path(path).is_dir() and not Path(path).is_symlink())
    return [path for path in real if not any(Path(path).is_relative_to(p) for p in real if p != path)]


def _links() -> list[tuple[str, str]]:
    """Return the system's folders that are links, with where they lead: /bin, today."""
    return [(os.readlink(path), path) for path in _SYSTEM if Path(path).is_symlink()]


def _bubblewrap(program: list[str], root: str) -> list[str]:
    command = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    command += ["--proc", "/proc", "--dev", "/dev"]
    for path in ("/tmp", "/dev/shm"):
        command += ["--size", str(HOME_BYTES), "--tmpfs", path]
    for path in _shown():  # after the temporary home: an environment may lie in /tmp
        command += ["--ro-bind", path, path]
    for target, path in _links():
        command += ["--symlink", target, path]
    return [*command, "--chdir", "/tmp", "--remount-ro", "/", *program]


def _unshare(program: list[str], root: str) -> list[str]:
    """Return a command that moves to a new root, on a temporary file system, and gives up all rights."""
    read_only = "mount -o remount,bind,ro,nosuid,nodev"
    new = shlex.quote(root)
    lines = ["set -e", f"mount -t tmpfs -o size=1m,mode=755 none {new}", f"cd {new}"]
    lines.append("mkdir proc dev tmp old && mount -t proc none proc")
    # The temporary home before what is shown: an environment may lie in /tmp.
    lines.append(f"mount -t tmpfs -o size={HOME_BYTES},nr_inodes=512,mode=1777,nosuid,nodev none tmp")
    for path in map(shlex.quote, _shown()):
        lines.append(f"mkdir -p .{path} && mount --bind {path} .{path} && {read_only} .{path}")
    lines += [f"ln -s {shlex.quote(target)} .{path}" for target, path in _links()]
    lines += [
        f"touch dev/{name} && mount --bind /dev/{name} dev/{name}" for name in ("null", "zero", "urandom")
    ]
    lines += [f"{read_only} .", "pivot_root . old", "umount -l /old", "cd /tmp"]
    if os.geteuid() == 0:
        apart, user = [], str(60_000 + os.getpid() % 5_000)  # whose processes are counted alone
        drop = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--no-new-privs"]
        drop += ["--bounding-set=-all", "--inh-caps=-all"]
    else:
        apart = ["--user", "--map-root-user"]
        drop = ["unshare", "--user", "--map-user=1000", "--map-group=1000", "setpriv", "--no-new-privs"]
    # The shell stays the first process: it dies with unshare, and all others with it.
    lines.append(f"{shlex.join([*drop, *program])}; exit $?")
    command = ["unshare", *apart, "--mount", "--pid", "--net", "--ipc", "--uts", "--fork", "--kill-child"]
    return [*command, "/bin/sh", "-c", "\n".join(lines)]
