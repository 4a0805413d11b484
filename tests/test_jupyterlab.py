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
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import unquote

import pytest
from page_checks import unset_formulas

ROOT = Path(__file__).parents[1]
LESSON = ROOT / "notebooks" / "03_self_attention.ipynb"
#: All cells at once, not only those in sight; no question about news; nothing runs.
SETTINGS = {
    "notebook-extension/tracker": {"windowingMode": "none", "autoStartDefaultKernel": False},
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
}
#: What is left where Markdown is not understood: directives, roles, targets, labels, tags of HTML.
RAW = re.compile(r":::|^```|\{[\w:]+\}`|^\([\w-]+\)=|\$|</?(?:details|summary)|\]\(|\*\*", flags=re.M)


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """Start JupyterLab on a free port, in a folder of its own; return the address of the lesson in it."""
    folder = tmp_path_factory.mktemp("lab")
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
            wait_for(f"http://127.0.0.1:{port}/api/status?token={token}", server, folder / "log")
            yield f"http://127.0.0.1:{port}/doc/tree/notebooks/{LESSON.name}?token={token}"
        finally:
            server.terminate()
            server.wait(timeout=30)


def wait_for(address, server, log, seconds=90):
    """Wait until a server answers; say what it wrote if it does not."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and server.poll() is None:
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    pytest.fail(f"JupyterLab does not start:\n{log.read_text(encoding='utf-8')}")


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
