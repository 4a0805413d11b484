"""Put the notebooks and the ledger into a wheel; an editable installation reads those of its clone."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class NotebooksHook(BuildHookInterface):
    """Adds the clone's ``notebooks``, which `start` hands out and `claim` runs, and the verdicts."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add them, unless the installation is editable."""
        if version == "standard":
            for name in ("notebooks", "book/claims.yml"):
                build_data["force_include"][str(Path(self.root).parents[1] / name)] = name
