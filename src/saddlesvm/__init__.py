"""Support vector machines trained fast to a certified optimum."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from saddlesvm.audit import certify
from saddlesvm.certificate import Certificate
from saddlesvm.data import Store
from saddlesvm.estimators import LinearSVC, LinearSVR
from saddlesvm.outcome import NotCertifiedWarning, Outcome
from saddlesvm.solvers import DCD, SDCA, Auto, Newton, Pegasos

if TYPE_CHECKING:
    from saddlesvm.kernel_estimators import KernelSVC
    from saddlesvm.paths import LinearSVCCV
    from saddlesvm.solvers.kernel_pegasos import KernelPegasos
    from saddlesvm.solvers.kernel_sdca import KernelSDCA

__version__ = "0.1.0"

__all__ = [
    "DCD",
    "SDCA",
    "Auto",
    "Certificate",
    "KernelPegasos",
    "KernelSDCA",
    "KernelSVC",
    "LinearSVC",
    "LinearSVCCV",
    "LinearSVR",
    "Newton",
    "NotCertifiedWarning",
    "Outcome",
    "Pegasos",
    "Store",
    "certify",
]

LOADED_WHEN_USED = {
    "KernelSVC": "saddlesvm.kernel_estimators",
    "KernelSDCA": "saddlesvm.solvers.kernel_sdca",
    "KernelPegasos": "saddlesvm.solvers.kernel_pegasos",
    "LinearSVCCV": "saddlesvm.paths",
}


def __getattr__(name: str) -> Any:
    if name in LOADED_WHEN_USED:
        return getattr(importlib.import_module(LOADED_WHEN_USED[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
