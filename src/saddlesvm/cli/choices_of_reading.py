"""The values that readers take for the choices of --header and --index-base."""

from __future__ import annotations

from typing import Any

HEADER: dict[str, Any] = {"auto": "auto", "yes": True, "no": False}
ZERO_BASED: dict[str, Any] = {"auto": "auto", "0": True, "1": False}
