"""The check of the study pages stands beside them, outside the package."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "study"))
