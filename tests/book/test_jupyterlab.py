"""A lesson in a real JupyterLab: its Markdown reads as it is meant to, with nothing raw left in it."""

import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote

import pytest
from page_checks import unset_formulas

ROOT = Path(__file__).parents[2]
LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))
#: One that links to a section of its own; the names of figures and equations have small letters.
LESSON = next(path for path in LESSONS if re.search(r"\]\(#[A-Z]", path.read_text("utf-8")))
#: All cells at once, not only those in sight; no question about news; nothing runs.
SETTINGS = {
    "notebook-extension/tracker": {"windowingMode": "none", "autoStartDefaultKernel": False},
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
}
#: What is left where Markdown is not understood: directives, roles, targets, labels, tags of HTML.
RAW = re.compile(r":::|^```|\{[\w:]+\}`|^\([\w-]+\)=|\$|</?(?:details|summary)|\]\(|\*\*", flags=re.M)


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """Start JupyterLab in a folder of its own; return the address of the lesson in it."""
    silent = []
    for _ in range(2):  # a start that stays silent says nothing about the lesson: one more is made
        folder = tmp_path_factory.mktemp("lab")
        with start_lab(folder) as (server, site, token):
            trouble = wait_for(f"{site}/api/status?token={token}", server)
            if not trouble:
                yield f"{site}/doc/tree/notebooks/{LESSON.name}?token={token}"
                return
        silent.append(f"{trouble}\n{(folder / 'log').read_text(encoding='utf-8')}")
    pytest.fail("JupyterLab does not answer:\n" + "\n".join(silent))


@contextmanager
def start_lab(folder):
    """Start JupyterLab with a copy of the lesson, on a free port; give the process, its site, its token."""
    (folder / "notebooks").mkdir()
    shutil.copy(LESSON, folder / "notebooks")
    for name, values in SETTINGS.items():
        path = folder / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values), encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token = secrets.token_hex(16)
    own = {f"JUPYTER_{kind}_DIR": str(folder / kind) for kind in ("CONFIG", "DATA", "RUNTIME")}
    own |= {f"JUPYTERLAB_{kind}_DIR": str(folder / kind.lower()) for kind in ("SETTINGS", "WORKSPACES")}
    options = [f"--ServerApp.port={port}", "--ServerApp.ip=127.0.0.1", "--ServerApp.port_retries=0"]
    options += [f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={folder}", "--allow-root"]
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", *options]
    with (folder / "log").open("w", encoding="utf-8") as log:
        server = subprocess.Popen(command, env=os.environ | own, stdout=log, stderr=subprocess.STDOUT)
        try:
            yield server, f"http://127.0.0.1:{port}", token
        finally:
            server.terminate()
            try:
                server.wait(timeout=30)
            except subprocess.TimeoutExpired:
                server.kill()


def wait_for(address, server, seconds=60):
    """Wait until a server answers: return nothing then, or how the last question to it ended."""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    begun, trouble = time.monotonic(), "it was not asked"
    while time.monotonic() < begun + seconds:
        if server.poll() is not None:
            return f"it ended with {server.returncode} after {time.monotonic() - begun:.0f} s"
        try:
            with direct.open(address, timeout=20):
                return ""
        except OSError as error:  # a refused connection, an answer of 4xx or 5xx, or none in time
            trouble = f"{type(error).__name__}: {error}"
            time.sleep(0.2)
    return f"after {seconds} s: {trouble}"


def test_a_lesson_reads_right_in_jupyterlab(lab: str, browser) -> None:
    prose = [
        cell for cell in json.loads(LESSON.read_text("utf-8"))["cells"] if cell["cell_type"] == "markdown"
    ]
    text = "\n".join("".join(cell["source"]) for cell in prose)
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(120_000)
    page.goto(lab)
    page.locator(".jp-MarkdownCell .jp-RenderedMarkdown h1").wait_for()
    count = "document.querySelectorAll('.jp-MarkdownCell .jp-RenderedMarkdown').length"
    page.wait_for_function(f"{count} === {len(prose)}")
    formulas = len(re.findall(r"\$\$[^$]+\$\$|(?<!\$)\$[^$\n]+\$(?!\$)", re.sub(r"\s+", " ", text)))
    page.wait_for_function(
        f"document.querySelectorAll('.jp-RenderedMarkdown mjx-container').length >= {formulas}"
    )
    assert formulas > 20
    assert not unset_formulas(page)

    folded = page.locator(".jp-RenderedMarkdown details")
    assert folded.count() == text.count("<details>") > 0
    assert not page.locator(".jp-RenderedMarkdown details[open]").count()
    assert not folded.locator("pre").first.is_visible()
    assert folded.locator("summary").first.is_visible()
    assert page.locator(".jp-CodeCell .jp-InputArea-collapsed, .jp-CodeCell .jp-Placeholder").count() > 10

    page.evaluate("document.querySelectorAll('.jp-RenderedMarkdown details').forEach(e => e.open = true)")
    shown = page.evaluate(
        """[...document.querySelectorAll('.jp-MarkdownCell .jp-RenderedMarkdown')].map(cell => {
             const copy = cell.cloneNode(true);
             copy.querySelectorAll('mjx-container').forEach(e => e.remove());
             copy.querySelectorAll('pre, code').forEach(e => e.replaceWith('`'));
             return copy.textContent;
           })"""
    )
    assert not [found[0] for cell in shown for found in RAW.finditer(cell)]
    quoted = page.locator(".jp-RenderedMarkdown blockquote > p:first-child > strong:first-child")
    assert quoted.count() >= len(re.findall(r"^> \*\*[^*]+\.\*\*", text, flags=re.M)) > 5

    headings = page.locator(".jp-RenderedMarkdown :is(h1, h2, h3)")
    names = set(headings.evaluate_all("all => all.map(e => e.id || e.dataset.jupyterId)"))
    anchors = {unquote(name) for name in re.findall(r"\]\(#((?!eq-)[^)]+)\)", text)}
    assert anchors, "the lesson links to none of its sections"
    assert anchors <= names, f"no heading has the name {anchors - names}"
    page.close()
