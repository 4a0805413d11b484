"""The Chromium that is installed, for what prints slides and tests pages."""

import os
import shutil

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")


def browser_path():
    """Return the path of a Chromium, which the variable CHROMIUM may name, or None."""
    named = os.environ.get("CHROMIUM", "")
    return named or next((found for name in BROWSERS if (found := shutil.which(name))), None)


def browser_flags():
    """Return the flags that it needs here: root has no sandbox."""
    return ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
