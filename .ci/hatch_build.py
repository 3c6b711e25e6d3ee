"""The tag of a wheel that brings kernels along: one version of Python, one system, one kind of processor."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class KernelsHook(BuildHookInterface):
    """Called by hatchling."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name the system where there are kernels; without them the wheel is for all."""
        if version == "standard" and Path(self.root, "src", "saddlesvm", "_kernels").is_dir():
            python = f"cp{sys.version_info.major}{sys.version_info.minor}"
            build_data["pure_python"] = False
            build_data["tag"] = f"{python}-{python}-manylinux_2_17_x86_64"
