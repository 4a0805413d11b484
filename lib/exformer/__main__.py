"""``python -m exformer`` is the command ``exformer``."""

import sys

from exformer.cli import main

sys.exit(main())
