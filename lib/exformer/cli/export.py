"""``exformer export``: a model in another form."""

import argparse

from exformer.hub.live import export_live


def export_model(args: argparse.Namespace) -> None:
    """Write a model as a script, and say where it is."""
    path = export_live(args.model, args.live)
    print(f"{path}: {path.stat().st_size / 1e6:.2f} MB; a page loads it after the scripts of book/live")
