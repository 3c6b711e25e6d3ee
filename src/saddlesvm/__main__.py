"""``python -m saddlesvm``: the command line."""

import sys

from saddlesvm.cli import main

sys.exit(main())
