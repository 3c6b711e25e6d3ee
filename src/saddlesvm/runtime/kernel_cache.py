"""The cached kernels of this package, and how to remove them after a change to its source."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from numba.core import config


def clear_cache() -> int:
    """Remove the cached kernels of this package; the number of files removed."""
    package = Path(__file__).parents[1]
    numba_config: Any = config
    elsewhere = numba_config.CACHE_DIR
    places = [package, Path(elsewhere)] if elsewhere else [package]
    found = [file for place in places for suffix in ("*.nbi", "*.nbc") for file in place.rglob(suffix)]
    ours = [file for file in found if package in file.parents or "saddlesvm" in os.fspath(file)]
    for file in ours:
        file.unlink(missing_ok=True)
    return len(ours)
