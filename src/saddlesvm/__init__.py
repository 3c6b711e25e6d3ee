"""Support vector machines trained fast to a certified optimum."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from saddlesvm.data import Store
from saddlesvm.estimators.certify import certify
from saddlesvm.estimators.linear_svc import LinearSVC
from saddlesvm.estimators.linear_svr import LinearSVR
from saddlesvm.estimators.register import register_estimator
from saddlesvm.estimators.warmup import warmup
from saddlesvm.fit.outcome import NotCertifiedWarning, Outcome
from saddlesvm.problem.certificate import Certificate
from saddlesvm.problem.losses import register as register_loss
from saddlesvm.solvers import DCD, SDCA, Auto, Newton, Pegasos, register_solver

if TYPE_CHECKING:
    from saddlesvm.estimators.certify_kernel import certify_kernel
    from saddlesvm.estimators.cross_validation import LinearSVCCV
    from saddlesvm.estimators.first_weight import C_max
    from saddlesvm.estimators.kernel import KernelSVC
    from saddlesvm.estimators.leave_one_out import LeaveOneOut, leave_one_out
    from saddlesvm.estimators.one_class import OneClassSVM
    from saddlesvm.estimators.svc import SVC, NuSVC
    from saddlesvm.estimators.svr import SVR, NuSVR
    from saddlesvm.solvers.kernel.decomposition import KernelDecomposition
    from saddlesvm.solvers.kernel.pegasos import KernelPegasos
    from saddlesvm.solvers.kernel.stochastic import KernelSDCA

__version__ = "0.1.0"

__all__ = [
    "DCD",
    "SDCA",
    "SVC",
    "SVR",
    "Auto",
    "C_max",
    "Certificate",
    "KernelDecomposition",
    "KernelPegasos",
    "KernelSDCA",
    "KernelSVC",
    "LeaveOneOut",
    "LinearSVC",
    "LinearSVCCV",
    "LinearSVR",
    "Newton",
    "NotCertifiedWarning",
    "NuSVC",
    "NuSVR",
    "OneClassSVM",
    "Outcome",
    "Pegasos",
    "Store",
    "certify",
    "certify_kernel",
    "leave_one_out",
    "register_estimator",
    "register_loss",
    "register_solver",
    "warmup",
]

LOADED_WHEN_USED = {
    "C_max": "saddlesvm.estimators.first_weight",
    "KernelSVC": "saddlesvm.estimators.kernel",
    "certify_kernel": "saddlesvm.estimators.certify_kernel",
    "NuSVC": "saddlesvm.estimators.svc",
    "NuSVR": "saddlesvm.estimators.svr",
    "OneClassSVM": "saddlesvm.estimators.one_class",
    "SVC": "saddlesvm.estimators.svc",
    "SVR": "saddlesvm.estimators.svr",
    "LeaveOneOut": "saddlesvm.estimators.leave_one_out",
    "leave_one_out": "saddlesvm.estimators.leave_one_out",
    "KernelDecomposition": "saddlesvm.solvers.kernel.decomposition",
    "KernelSDCA": "saddlesvm.solvers.kernel.stochastic",
    "KernelPegasos": "saddlesvm.solvers.kernel.pegasos",
    "LinearSVCCV": "saddlesvm.estimators.cross_validation",
}


def __getattr__(name: str) -> Any:
    if name in LOADED_WHEN_USED:
        return getattr(importlib.import_module(LOADED_WHEN_USED[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
