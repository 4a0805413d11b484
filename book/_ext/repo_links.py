"""Find the book's own repository, so that no address is written down anywhere.

Order: BOOK_REPOSITORY_URL, GITHUB_SERVER_URL/GITHUB_REPOSITORY (set in GitHub
Actions), ``git remote get-url origin``. Where none is known, the book has no
launch buttons. Pages write it as https://github.com/OWNER/NAME; the build puts the real one in its place.
"""

import os
import re
import subprocess
from pathlib import Path

#: The branch that the workflow writes: notebooks that know their repository, wheels, `lessons.py`.
PUBLISHED = "published"
#: How a page writes the repository's address.
PLACEHOLDER = "https://github.com/OWNER/NAME"
HOSTS = {"github.com", "gitlab.com", "bitbucket.org"}
URL = re.compile(
    r"(?:(?:https?|ssh|git)://)?(?:[^@/\s]+@)?([\w.-]+)(?::\d+(?=/))?[:/]([^/:\s]+)/([^/\s]+?)(?:\.git)?/?"
)


def normalise(url):
    """Return ``https://host/owner/name`` without credentials, or an empty string."""
    m = URL.fullmatch(url.strip())
    return f"https://{m[1].lower()}/{m[2]}/{m[3]}" if m and m[1].lower() in HOSTS else ""


def find_repository(root):
    """Return the repository's address and its branch; an empty address where none is known."""
    env = os.environ
    url = env.get("BOOK_REPOSITORY_URL", "")
    if not url and env.get("GITHUB_REPOSITORY"):
        url = f"{env.get('GITHUB_SERVER_URL', 'https://github.com')}/{env['GITHUB_REPOSITORY']}"
    url = url or git(root, "remote", "get-url", "origin")
    head = git(root, "symbolic-ref", "--short", "refs/remotes/origin/HEAD")
    branch = env.get("BOOK_REPOSITORY_BRANCH") or head.removeprefix("origin/") or "main"
    return normalise(url), branch


def find_pages(root):
    """Return where GitHub publishes the book, with names to replace where another host has it."""
    url, _ = find_repository(root)
    owner, name = (url if url.startswith("https://github.com/") else PLACEHOLDER).split("/")[-2:]
    return f"https://{owner}.github.io/{name}"


def git(root, *args):
    """Return what git says of a folder; nothing where it is silent."""
    try:
        out = subprocess.run(["git", "-C", str(root), *args], capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return out.stdout.strip() if out.returncode == 0 else ""


def set_links(app, config):
    """Point the theme's buttons at the repository, or take them away."""
    url, _ = find_repository(Path(app.srcdir))
    options = config.html_theme_options
    if url:
        options.update(repository_url=url, repository_branch=PUBLISHED, path_to_docs="")
        options.update(use_repository_button=True, use_issues_button="github" in url)
        return
    for key in ("repository_url", "repository_branch", "launch_buttons"):
        options.pop(key, None)
    options.update(use_repository_button=False, use_issues_button=False, use_edit_page_button=False)


def name_repository(app, name, source):
    """Write the repository's address where a page asks for it."""
    url, _ = find_repository(Path(app.srcdir))
    if url:
        source[0] = source[0].replace(PLACEHOLDER, url)


def setup(app):
    """Register the extension."""
    app.connect("config-inited", set_links, priority=100)
    app.connect("source-read", name_repository)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
