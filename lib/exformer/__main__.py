"""``python -m exformer`` is the command ``exformer``."""

import sys

from exformer.cli.main import main

sys.exit(main())
