"""The command ``exformer-teacher``, in a clone of the book: questions, exams, answers, and grading."""

import argparse
import sys
from collections.abc import Sequence

from exformer_lessons.command import run_command
from exformer_lessons.teacher import answers, assignments, exams, grade, marks, mock, questions, seal

#: Each adds its commands to the parser.
_MODULES = (questions, exams, mock, answers, assignments, seal, grade, marks)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        arguments: The words after ``exformer-teacher``; None for those of the process.

    Returns:
        The exit status: 0, or 2 after a mistake.
    """
    parser = argparse.ArgumentParser(prog="exformer-teacher", description="What teachers need.")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in _MODULES:
        module.add_commands(commands)
    return run_command(parser, arguments)


if __name__ == "__main__":
    sys.exit(run())
