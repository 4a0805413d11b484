"""Write the repository's address into the lessons' set-up cells; ``--check`` only says which are stale.

Where the repository is unknown (a clone without a public remote) the stamps are left as they are.
"""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book" / "_ext"))

from repo_links import find_repository  # noqa: E402


def stamp(text, url):
    """Return the notebook's text with the address in its set-up cell."""
    notebook = json.loads(text)
    for cell in notebook["cells"]:
        if "setup" in cell["metadata"].get("tags", []):
            source = "".join(cell["source"]).splitlines(keepends=True)
            cell["source"] = [f'REPO = "{url}"\n' if line.startswith("REPO = ") else line for line in source]
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def main(check):
    """Stamp or check each lesson; return how many were stale."""
    url, _ = find_repository(ROOT)
    if not url:
        print("repository unknown: lessons keep the address they have")
        return 0
    stale = []
    for path in sorted((ROOT / "notebooks").rglob("*.ipynb")):
        old = path.read_text(encoding="utf-8")
        new = stamp(old, url)
        if json.loads(new) != json.loads(old):
            stale.append(path.name)
            if not check:
                path.write_text(new, encoding="utf-8")
    print(f"repository {url}; {'stale' if check else 'stamped'}: {', '.join(stale) or 'none'}")
    return len(stale) if check else 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv) > 0)
