"""The folded solutions of a lesson's exercises, as readers find them."""

import json
import re
from pathlib import Path


def solutions(lesson: str) -> dict[str, str]:
    """Return the program text of each solution, by the label of its exercise, in the order of the page.

    Args:
        lesson: The name of its notebook, without the ending.
    """
    path = Path(__file__).parents[1] / "notebooks" / f"{lesson}.ipynb"
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    prose = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    blocks = re.findall(r"^(`{4,})\{solution\} (\S+)\n(.*?)^\1$", prose, flags=re.M | re.S)
    return {
        label: re.search(r"^```python\n(.*?)^```", body, flags=re.M | re.S)[1] for _, label, body in blocks
    }
