"""Write into the lessons' set-up cells where Colab finds the library: this repository, at this commit.

The workflow that publishes the book does this in its own checkout; nobody commits it. Where the repository is
not known (a clone without a public remote) the notebooks stay as they are.
"""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "book" / "_ext"), str(ROOT / "lib")]

from repo_links import find_repository  # noqa: E402

from exformer_lessons.handout import as_text, with_address  # noqa: E402


def main(root=ROOT):
    """Stamp each notebook; say with what."""
    url, _ = find_repository(root)
    if not url:
        return "repository unknown: the notebooks stay as they are"
    head = ["git", "-C", str(root), "rev-parse", "HEAD"]
    commit = subprocess.run(head, check=True, capture_output=True, text=True).stdout.strip()
    for path in sorted((root / "notebooks").rglob("*.ipynb")):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(as_text(with_address(notebook, f"{url}@{commit}")), encoding="utf-8", newline="\n")
    return f"{url}@{commit}"


if __name__ == "__main__":
    print(main())
