"""The command ``exformer-lessons``: lessons and claims; in a clone of the book, trials and sabotages."""

import argparse
import sys
from collections.abc import Sequence

from exformer_lessons.command import add_command, run_command
from exformer_lessons.trials import RUNS


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        arguments: The words after ``exformer-lessons``; None for those of the process.

    Returns:
        The exit status: 0; 1 if a measurement is not repeated; 2 after a mistake.
    """
    parser = argparse.ArgumentParser(
        prog="exformer-lessons", description="What the lessons offer beside their pages."
    )
    group = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    add = add_command(
        group, "start", _start, "open a lesson in JupyterLab, in a folder of your own"
    ).add_argument
    add(
        "lesson", nargs="?", default="01", metavar="LESSON", help="05, positional_encoding, …; 01 if left out"
    )
    add("--folder", metavar="FOLDER", help="your notebooks; what is there stays as you left it")
    add("--no-browser", action="store_true", help="only say the address")
    add("--options", nargs=argparse.REMAINDER, default=[], metavar="WORD", help="the rest is JupyterLab's")
    add = add_command(
        group, "doctor", _doctor, "say what is there, run lessons up to their first exercises"
    ).add_argument
    add("lessons", nargs="*", default=["01"], metavar="LESSON", help="05, …; 01 if left out")
    add("--all", action="store_true", help="all lessons, some minutes")
    add = add_command(
        group, "handout", _handout, "write lessons without outputs and solutions, to hand out"
    ).add_argument
    add("lessons", nargs="*", metavar="LESSON", help="05, positional_encoding, …; all if left out")
    add("--out", required=True, metavar="FOLDER", help="where they are written")
    add = add_command(
        group,
        "hub",
        _hub,
        "write the lessons where they are not yet, then run the server that a JupyterHub asks for",
    ).add_argument
    add("--folder", metavar="FOLDER", help="the student's notebooks; what is there stays as it is")
    add(
        "words",
        nargs=argparse.REMAINDER,
        metavar="WORD",
        help="the server's command; jupyterhub-singleuser if left out",
    )
    add = add_command(group, "claim", _claim, "reproduce rows of the ledger").add_argument
    add("ids", nargs="+", metavar="ID", help="such as A18")
    add = add_command(
        group, "doubt", _doubt, "sabotage a cause of each claim, which must then be refused"
    ).add_argument
    add("lessons", nargs="*", metavar="LESSON", help="05, positional_encoding, …; all if left out")
    add("--only", nargs="+", default=[], metavar="ID", help="claims")
    add = add_command(
        group, "trials", _trials, "record runs with other seeds, steps, learning rates and orders"
    ).add_argument
    add("lessons", nargs="*", metavar="LESSON", help="05, positional_encoding, …; all if left out")
    add("--only", nargs="+", default=[], metavar="ID", help="claims")
    add("--runs", nargs="+", default=[], choices=list(RUNS), metavar="RUN", help=", ".join(RUNS))
    add("--again", action="store_true", help="also what is recorded already")
    add = add_command(
        group, "export-live", _export_live, "write a model as a script, for live figures in a browser"
    ).add_argument
    add("--model", required=True, metavar="NAME", help="a folder, or the name of a model")
    add("--out", required=True, metavar="FOLDER", help="where the script is written")
    return run_command(parser, arguments)


def _start(asked: argparse.Namespace) -> int:
    from exformer_lessons.lab import start

    start(asked.lesson, asked.folder, [*["--no-browser"] * asked.no_browser, *asked.options])
    return 0


def _doctor(asked: argparse.Namespace) -> int:
    from exformer_lessons.lab import check

    return check([] if asked.all else asked.lessons)


def _handout(asked: argparse.Namespace) -> int:
    from exformer_lessons.handout import hand_out

    written, _ = hand_out(asked.lessons, asked.out)
    print(f"{asked.out}: {len(written)} notebooks")
    return 0


def _hub(asked: argparse.Namespace) -> None:
    from exformer_lessons.handout import serve

    serve(asked.words, asked.folder)


def _claim(asked: argparse.Namespace) -> int:
    from exformer_lessons.reproduce import reproduce

    return reproduce(asked.ids)


def _doubt(asked: argparse.Namespace) -> int:
    from exformer_lessons.sabotage import doubt

    return doubt(asked.lessons, only=asked.only)


def _trials(asked: argparse.Namespace) -> int:
    from exformer_lessons.record import record_trials

    return record_trials(asked.lessons, only=asked.only, runs=asked.runs, again=asked.again)


def _export_live(asked: argparse.Namespace) -> int:
    from exformer_lessons.live.export import export_live

    path = export_live(asked.model, asked.out)
    print(f"{path}: {path.stat().st_size / 1e6:.2f} MB; a page loads it after the scripts of book/live")
    return 0


if __name__ == "__main__":
    sys.exit(run())
