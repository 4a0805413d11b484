"""The page of bugs that others had, from book/bugs.yml."""

from pathlib import Path

import yaml
from ledger_data import read_lessons


def read_bugs(root):
    """Return the first lines of their examples, and the bugs by subject."""
    return yaml.safe_load(Path(root, "book", "bugs.yml").read_text(encoding="utf-8"))


def all_bugs(folder):
    """Return the bugs in Markdown, subject by subject.

    Args:
        folder: ``book``.
    """
    told = read_bugs(Path(folder).parent)
    lessons = {lesson["slug"]: lesson for lesson in read_lessons(Path(folder).parent)}
    setup = f"<details>\n<summary>The lines that come first</summary>\n\n{code(told['setup'])}\n\n</details>"
    parts = [setup]
    for subject in told["subjects"]:
        parts.append(f"## {subject['title']}")
        parts += [one_bug(bug, lessons[bug["lesson"]]) for bug in subject["bugs"]]
    return "\n\n".join(parts)


def one_bug(bug, lesson):
    """Return a bug: what was seen, the code that shows it, and where to read on."""
    lines = bug["code"] + (f"\n# fails: {bug['error']}" if "error" in bug else "")
    threads = ", ".join(f"[{name}]({address(name)})" for name in bug["threads"])
    taught = f"[Lesson {lesson['number']}](../{lesson['page']}.ipynb)"
    after = f"{{.bug-links}}\n{threads}. {taught}. `{bug['test']}`"
    return f"### {bug['title']}\n\n{bug['what']}\n\n{code(lines)}\n\n{after}"


def code(lines):
    """Return a fence of Python."""
    return f"```python\n{lines.rstrip()}\n```"


def address(thread):
    """Return the address of a thread, which GitHub leads on to a pull request if it is one."""
    repository, _, number = thread.partition("#")
    return f"https://github.com/{repository}/issues/{number}"
