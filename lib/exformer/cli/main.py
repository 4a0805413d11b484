"""The command ``exformer``: cut text into tokens, train a model, continue a text, translate lines.

Text comes in on the standard input and goes out on the standard output, in UTF-8; a mistake is one line on
the standard error and exit status 2. This module loads no PyTorch: that takes a second, and the help none.
"""

import importlib
import os
import sys
from collections.abc import Sequence

from exformer.cli.ctrl_c import interrupts_end_at_once
from exformer.cli.parser import make_parser, one_line


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        arguments: The words after ``exformer``; None for those of the process.

    Returns:
        The exit status: 0, or 2 after a mistake.
    """
    if sys.stderr is None:  # it is closed: nobody reads messages
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace", newline="\n")
    try:
        with interrupts_end_at_once():
            args = make_parser().parse_args(arguments)
            module, name = args.run.split(":")
            run = getattr(importlib.import_module(f"exformer.cli.{module}"), name)
        if sys.stdout is None:
            raise ValueError("the standard output is closed")
        run(args)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of our output has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (ValueError, OSError) as error:
        print(f"exformer: {one_line(str(error))}", file=sys.stderr)
        return 2
    except MemoryError:
        print("exformer: there is not enough memory", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0
