"""What the commands ``exformer-lessons`` and ``exformer-teacher`` have in common."""

import argparse
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
        return asked.run(asked) or 0
    except (ValueError, OSError) as error:
        print(f"{parser.prog}: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
