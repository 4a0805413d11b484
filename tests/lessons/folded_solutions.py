"""The folded solutions of a lesson's exercises, as readers find them."""

import json
import re
from pathlib import Path

EXERCISE = re.compile(r"^> \*\*Exercise [\d.]+ \((.+)\)\.\*\*", flags=re.M)
SOLUTION = re.compile(r"^<details>\n<summary>Solution</summary>\n(.*?)^</details>$", flags=re.M | re.S)
PROGRAM = re.compile(r"^```python\n(.*?)^```$", flags=re.M | re.S)


def exercises(lesson: str) -> dict[str, list[str]]:
    """Return the solutions that follow each exercise, by its title, in the order of the page.

    Args:
        lesson: Its slug, such as ``tokens``.
    """
    [path] = Path(__file__).parents[2].glob(f"notebooks/[0-9][0-9]_{lesson}.ipynb")
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    prose = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    parts = EXERCISE.split(prose)[1:]
    return {title: SOLUTION.findall(text) for title, text in zip(parts[::2], parts[1::2], strict=True)}


def solutions(lesson: str) -> dict[str, str]:
    """Return the program text of each solution that has one, by title, in the order of the page.

    Args:
        lesson: Its slug, such as ``tokens``.
    """
    found = {title: PROGRAM.search("".join(texts)) for title, texts in exercises(lesson).items()}
    return {title: program[1] for title, program in found.items() if program}
