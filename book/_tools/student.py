"""Write the notebooks to hand out to students: no outputs, no solutions.

    python book/_tools/student.py [05 …]      # all, or those named, to _build/student

What is folded away (``<details>``) is taken out, exercises are as they were given, folded code stays folded.
Links between notebooks that are handed out together stay as they are; other links into the book lead to its
repository, and where that is not known only their words are left.
"""

import json
import re
import shutil
import sys
from pathlib import Path
from posixpath import normpath

from exformer_lessons.notebook import find

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book" / "_ext"))

from repo_links import find_repository  # noqa: E402

FOLDER = ROOT / "_build" / "student"
DETAILS = re.compile(r"^<details>$.*?^</details>$\n*", flags=re.M | re.S)
#: Code, where brackets are no link, or a link: its words and its address.
LINK = re.compile(
    r"(?P<code>^```.*?^```$|`[^`\n]+`(?!\]))|\[(?P<words>[^][]+)\]\((?P<address>[^()\s]+)\)", re.M | re.S
)


def handout(notebook, name, *, together, repository=""):
    """Return a notebook without outputs and solutions.

    Args:
        notebook: The notebook, as its file has it.
        name: Its path under ``notebooks``.
        together: Such paths of all notebooks that are handed out.
        repository: Where the files of the book can be read, without a slash at its end; empty if unknown.
    """
    cells = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            source = DETAILS.sub("", source).rstrip()
            source = LINK.sub(lambda link: _link(link, name, together, repository), source)
            if not source:
                continue
            cell = cell | {"source": source.splitlines(keepends=True)}
        else:
            cell = cell | {"outputs": [], "execution_count": None}
        cells.append(cell)
    return notebook | {"cells": cells}


def _link(link, name, together, repository):
    if link["code"] or re.match(r"[a-z]+:|#", link["address"]):
        return link[0]
    target, mark, anchor = link["address"].partition("#")
    path = normpath(f"notebooks/{name}/../{target}")
    if path.removeprefix("notebooks/") in together:
        return link[0]
    return f"[{link['words']}]({repository}/{path}{mark}{anchor})" if repository else link["words"]


def main(names, folder=FOLDER):
    """Write the named notebooks, or all; say what was written.

    Args:
        names: Lessons as `make notebooks` takes them; none stands for all.
        folder: Where they are written.
    """
    paths = find(names)
    if not names:
        shutil.rmtree(folder, ignore_errors=True)
    url, branch = find_repository(ROOT)
    repository = f"{url}/blob/{branch}" if url else ""
    together = {path.relative_to(ROOT / "notebooks").as_posix(): path for path in paths}
    for name, path in together.items():
        notebook = json.loads(path.read_text(encoding="utf-8"))
        given = handout(notebook, name, together=set(together), repository=repository)
        target = Path(folder, name)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(given, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    where = (
        f"links into the book lead to {repository}" if repository else "repository unknown: no links into it"
    )
    return f"{len(together)} notebooks in {folder}; {where}"


if __name__ == "__main__":
    print(main(sys.argv[1:]))
