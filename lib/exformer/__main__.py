"""``python -m exformer`` is the command ``exformer``."""

import sys

from exformer.cli.ctrl_c import interrupts_end_at_once


def run() -> int:
    """Run the command; its modules are loaded where an interrupt is quiet."""
    with interrupts_end_at_once():
        from exformer.cli.main import main
    return main()


if __name__ == "__main__":
    sys.exit(run())
