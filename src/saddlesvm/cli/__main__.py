"""``python -m saddlesvm.cli``: the command line without an installed script."""

import sys

from saddlesvm.cli import main

sys.exit(main())
