"""The command ``exformer-lessons``: what the lessons offer beside their pages."""

import argparse
import sys
from collections.abc import Sequence


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        arguments: The words after ``exformer-lessons``; None for those of the process.

    Returns:
        The exit status: 0, or 2 after a mistake.
    """
    parser = argparse.ArgumentParser(
        prog="exformer-lessons", description="What the lessons offer beside their pages."
    )
    group = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    what = "write a model as a script, for live figures in a browser"
    export = group.add_parser("export-live", help=what, description=f"{what[0].upper()}{what[1:]}.")
    export.add_argument("--model", required=True, metavar="NAME", help="a folder, or the name of a model")
    export.add_argument("--out", required=True, metavar="FOLDER", help="where the script is written")
    export.set_defaults(run=_export_live)
    asked = parser.parse_args(arguments)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace", newline="\n")
    try:
        asked.run(asked)
    except (ValueError, OSError) as error:
        print(f"exformer-lessons: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    return 0


def _export_live(asked: argparse.Namespace) -> None:
    from exformer_lessons.live.export import export_live

    path = export_live(asked.model, asked.out)
    print(f"{path}: {path.stat().st_size / 1e6:.2f} MB; a page loads it after the scripts of book/live")


if __name__ == "__main__":
    sys.exit(run())
