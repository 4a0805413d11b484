"""The library's own text, shown in a lesson."""

import ast
import inspect
from dataclasses import dataclass
from textwrap import dedent


@dataclass(frozen=True)
class _Source:
    """A piece of source text, shown as code."""

    text: str

    def __repr__(self) -> str:
        return self.text

    def _repr_markdown_(self) -> str:
        return f"```python\n{self.text}\n```"


def show_source(thing: object, *, docstring: bool = False) -> None:
    """Show the library's own text of a function or a class.

    Args:
        thing: A function or a class.
        docstring: Whether its docstrings are shown too.

    Examples:
        >>> from exformer_lessons.claims import ClaimError
        >>> show_source(ClaimError, docstring=True)
        class ClaimError(Exception):
            \"\"\"A claim that the numbers do not support.\"\"\"
    """
    text = dedent(inspect.getsource(thing)).rstrip()
    render(_Source(text if docstring else _without_docstrings(text)))


def _without_docstrings(text: str) -> str:
    drop: set[int] = set()
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.FunctionDef | ast.ClassDef) or len(node.body) < 2:
            continue
        if ast.get_docstring(node, clean=False) is not None:
            first, last = node.body[0].lineno, node.body[0].end_lineno
            after = {last + 1} if last < len(lines) and not lines[last] else set()
            drop |= set(range(first, last + 1)) | after
    return "\n".join(line for number, line in enumerate(lines, start=1) if number not in drop)


def render(thing: object) -> None:
    """Show something as a notebook does; print it where there is none."""
    try:
        from IPython.display import display
    except ImportError:  # plain Python, without a notebook
        print(thing)
    else:
        display(thing)
