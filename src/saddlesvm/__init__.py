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
    from saddlesvm.data.store import Store as Store
    from saddlesvm.estimators.audit import Audit as Audit
    from saddlesvm.estimators.audit import audit as audit
    from saddlesvm.estimators.automatic_C import AutomaticC as AutomaticC
    from saddlesvm.estimators.automatic_C import Choice as Choice
    from saddlesvm.estimators.certified_path import CertifiedPath as CertifiedPath
    from saddlesvm.estimators.certify import certify as certify
    from saddlesvm.estimators.certify import certify_kernel as certify_kernel
    from saddlesvm.estimators.conformal import ConformalSVC as ConformalSVC
    from saddlesvm.estimators.conformal import ConformalSVR as ConformalSVR
    from saddlesvm.estimators.cross_validation import LinearSVCCV as LinearSVCCV
    from saddlesvm.estimators.kernel import KernelSVC as KernelSVC
    from saddlesvm.estimators.leave_one_out import LeaveOneOut as LeaveOneOut
    from saddlesvm.estimators.leave_one_out import leave_one_out as leave_one_out
    from saddlesvm.estimators.linear import LinearSVR as LinearSVR
    from saddlesvm.estimators.linear_svc import LinearSVC as LinearSVC
    from saddlesvm.estimators.path import RegularizationPath as RegularizationPath
    from saddlesvm.estimators.path_grid import C_max as C_max
    from saddlesvm.estimators.persistence import load as load
    from saddlesvm.estimators.persistence import save as save
    from saddlesvm.estimators.persistence import save_liblinear as save_liblinear
    from saddlesvm.estimators.register import register_estimator as register_estimator
    from saddlesvm.estimators.svc import SVC as SVC
    from saddlesvm.estimators.svc import NuSVC as NuSVC
    from saddlesvm.estimators.svm import SVR as SVR
    from saddlesvm.estimators.svm import NuSVR as NuSVR
    from saddlesvm.estimators.svm import OneClassSVM as OneClassSVM
    from saddlesvm.estimators.warmup import warmup as warmup
    from saddlesvm.fit.outcome import NotCertifiedWarning as NotCertifiedWarning
    from saddlesvm.fit.outcome import Outcome as Outcome
    from saddlesvm.losses import register_loss as register_loss
    from saddlesvm.problem.certificate import Certificate as Certificate
    from saddlesvm.rows.small_types import bfloat16 as bfloat16
    from saddlesvm.solvers import DCD as DCD
    from saddlesvm.solvers import SDCA as SDCA
    from saddlesvm.solvers import Auto as Auto
    from saddlesvm.solvers import Newton as Newton
    from saddlesvm.solvers import Pegasos as Pegasos
    from saddlesvm.solvers import register_solver as register_solver
    from saddlesvm.solvers.kernel.decomposition import KernelDecomposition as KernelDecomposition
    from saddlesvm.solvers.kernel.pegasos import KernelPegasos as KernelPegasos
    from saddlesvm.solvers.kernel.stochastic import KernelSDCA as KernelSDCA

__version__ = "0.1.0"

HOMES = {
    "Audit": "saddlesvm.estimators.audit",
    "AutomaticC": "saddlesvm.estimators.automatic_C",
    "C_max": "saddlesvm.estimators.path_grid",
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
    "LinearSVR": "saddlesvm.estimators.linear",
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
}
__all__ = sorted(HOMES)
ROOMS = (
    "data",
    "estimators",
    "fit",
    "losses",
    "multiclass",
    "problem",
    "rows",
    "runtime",
    "solvers",
    "svm",
)  # always there after ``import saddlesvm``

if not TYPE_CHECKING:  # a name that is not there is then an error of the type checker
    __getattr__, __dir__ = lazily(__name__, HOMES | dict.fromkeys(ROOMS, ""))
