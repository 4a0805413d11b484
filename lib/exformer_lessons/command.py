"""What the commands ``exformer-lessons`` and ``exformer-teacher`` have in common."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any


def add_command(
    commands: Any, name: str, run: Callable[[argparse.Namespace], int | None], what: str
) -> argparse.ArgumentParser:
    """Add a command to a parser's commands; return its own parser."""
    parser = commands.add_parser(name, help=what, description=f"{what[0].upper()}{what[1:]}.")
    parser.set_defaults(run=run)
    return parser


def run_command(parser: argparse.ArgumentParser, arguments: Sequence[str] | None) -> int:
    """Run the command that the arguments name; return its exit status, 2 after a mistake."""
    asked = parser.parse_args(arguments)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace", newline="\n")
    try:
        status = asked.run(asked) or 0
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # the reader of our output has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ValueError, OSError) as error:
        said = str(error)
        if isinstance(error, FileNotFoundError) and error.filename:
            said = f"there is no {error.filename}"
        print(f"{parser.prog}: {' '.join(said.split())}", file=sys.stderr)
        return 2
