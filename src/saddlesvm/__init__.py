"""Support vector machines trained fast to a certified optimum."""

from __future__ import annotations

from typing import TYPE_CHECKING

from saddlesvm.runtime.lazy import lazily

if TYPE_CHECKING:
    from saddlesvm import data as data
    from saddlesvm import estimators as estimators
    from saddlesvm import losses as losses
    from saddlesvm import solvers as solvers
    from saddlesvm import svm as svm
    from saddlesvm.data.store import Store
    from saddlesvm.estimators.audit import Audit, audit
    from saddlesvm.estimators.automatic_C import AutomaticC, Choice
    from saddlesvm.estimators.certified_path import CertifiedPath
    from saddlesvm.estimators.certify import certify, certify_kernel
    from saddlesvm.estimators.conformal import ConformalSVC, ConformalSVR
    from saddlesvm.estimators.cross_validation import LinearSVCCV
    from saddlesvm.estimators.first_weight import C_max
    from saddlesvm.estimators.kernel import KernelSVC
    from saddlesvm.estimators.leave_one_out import LeaveOneOut, leave_one_out
    from saddlesvm.estimators.linear_svc import LinearSVC
    from saddlesvm.estimators.linear_svr import LinearSVR
    from saddlesvm.estimators.path import RegularizationPath
    from saddlesvm.estimators.persistence import load, save, save_liblinear
    from saddlesvm.estimators.register import register_estimator
    from saddlesvm.estimators.svc import SVC, NuSVC
    from saddlesvm.estimators.svm import SVR, NuSVR, OneClassSVM
    from saddlesvm.estimators.warmup import warmup
    from saddlesvm.fit.outcome import NotCertifiedWarning, Outcome
    from saddlesvm.problem.certificate import Certificate
    from saddlesvm.problem.losses import register as register_loss
    from saddlesvm.rows.small_types import bfloat16
    from saddlesvm.solvers import DCD, SDCA, Auto, Newton, Pegasos, register_solver
    from saddlesvm.solvers.kernel.decomposition import KernelDecomposition
    from saddlesvm.solvers.kernel.pegasos import KernelPegasos
    from saddlesvm.solvers.kernel.stochastic import KernelSDCA

__version__ = "0.1.0"

__all__ = [
    "DCD",
    "SDCA",
    "SVC",
    "SVR",
    "Audit",
    "Auto",
    "AutomaticC",
    "C_max",
    "Certificate",
    "CertifiedPath",
    "Choice",
    "ConformalSVC",
    "ConformalSVR",
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
    "RegularizationPath",
    "Store",
    "audit",
    "bfloat16",
    "certify",
    "certify_kernel",
    "leave_one_out",
    "load",
    "register_estimator",
    "register_loss",
    "register_solver",
    "save",
    "save_liblinear",
    "warmup",
]

HOMES = {
    "Audit": "saddlesvm.estimators.audit",
    "AutomaticC": "saddlesvm.estimators.automatic_C",
    "C_max": "saddlesvm.estimators.first_weight",
    "Certificate": "saddlesvm.problem.certificate",
    "CertifiedPath": "saddlesvm.estimators.certified_path",
    "Choice": "saddlesvm.estimators.automatic_C",
    "ConformalSVC": "saddlesvm.estimators.conformal",
    "ConformalSVR": "saddlesvm.estimators.conformal",
    "DCD": "saddlesvm.solvers",
    "SDCA": "saddlesvm.solvers",
    "Auto": "saddlesvm.solvers",
    "KernelDecomposition": "saddlesvm.solvers.kernel.decomposition",
    "KernelPegasos": "saddlesvm.solvers.kernel.pegasos",
    "KernelSDCA": "saddlesvm.solvers.kernel.stochastic",
    "KernelSVC": "saddlesvm.estimators.kernel",
    "LeaveOneOut": "saddlesvm.estimators.leave_one_out",
    "LinearSVC": "saddlesvm.estimators.linear_svc",
    "LinearSVCCV": "saddlesvm.estimators.cross_validation",
    "LinearSVR": "saddlesvm.estimators.linear_svr",
    "Newton": "saddlesvm.solvers",
    "NotCertifiedWarning": "saddlesvm.fit.outcome",
    "NuSVC": "saddlesvm.estimators.svc",
    "NuSVR": "saddlesvm.estimators.svm",
    "OneClassSVM": "saddlesvm.estimators.svm",
    "Outcome": "saddlesvm.fit.outcome",
    "Pegasos": "saddlesvm.solvers",
    "RegularizationPath": "saddlesvm.estimators.path",
    "SVC": "saddlesvm.estimators.svc",
    "SVR": "saddlesvm.estimators.svm",
    "Store": "saddlesvm.data.store",
    "bfloat16": "saddlesvm.rows.small_types",
    "audit": "saddlesvm.estimators.audit",
    "certify": "saddlesvm.estimators.certify",
    "certify_kernel": "saddlesvm.estimators.certify",
    "leave_one_out": "saddlesvm.estimators.leave_one_out",
    "load": "saddlesvm.estimators.persistence",
    "register_estimator": "saddlesvm.estimators.register",
    "register_loss": "saddlesvm.losses",
    "register_solver": "saddlesvm.solvers",
    "save": "saddlesvm.estimators.persistence",
    "save_liblinear": "saddlesvm.estimators.persistence",
    "warmup": "saddlesvm.estimators.warmup",
    # rooms that were always there after ``import saddlesvm``
    "data": "",
    "estimators": "",
    "fit": "",
    "losses": "",
    "multiclass": "",
    "problem": "",
    "rows": "",
    "runtime": "",
    "solvers": "",
    "svm": "",
}

if not TYPE_CHECKING:  # a name that is not there is then an error of the type checker
    __getattr__, __dir__ = lazily(__name__, HOMES)
