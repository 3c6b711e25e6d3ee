"""Support vector machines trained fast to a certified optimum."""

from __future__ import annotations

from typing import TYPE_CHECKING

from saddlesvm.runtime.lazy import lazy_attributes

if TYPE_CHECKING:
    from saddlesvm import (
        data as data,
        estimators as estimators,
        losses as losses,
        solvers as solvers,
        svm as svm,
    )
    from saddlesvm.data.store import Store as Store
    from saddlesvm.estimators.automatic_C import AutomaticC as AutomaticC
    from saddlesvm.estimators.certify import certify as certify
    from saddlesvm.estimators.cross_validation import LinearSVCCV as LinearSVCCV
    from saddlesvm.estimators.leave_one_out import leave_one_out as leave_one_out
    from saddlesvm.estimators.linear import LinearSVC as LinearSVC, LinearSVR as LinearSVR
    from saddlesvm.estimators.register import register_estimator as register_estimator
    from saddlesvm.fit.outcome import NotCertifiedWarning as NotCertifiedWarning, Outcome as Outcome
    from saddlesvm.kernel.certify_kernel import certify_kernel as certify_kernel
    from saddlesvm.kernel.kernel_pegasos import KernelPegasos as KernelPegasos
    from saddlesvm.kernel.svc import SVC as SVC, NuSVC as NuSVC
    from saddlesvm.kernel.svm import SVR as SVR, NuSVR as NuSVR, OneClassSVM as OneClassSVM
    from saddlesvm.losses import register_loss as register_loss
    from saddlesvm.models.liblinear_models import save_liblinear as save_liblinear
    from saddlesvm.models.persistence import load as load, save as save
    from saddlesvm.problem.certificate import Certificate as Certificate
    from saddlesvm.solvers import (
        DCD as DCD,
        SDCA as SDCA,
        Auto as Auto,
        Newton as Newton,
        Pegasos as Pegasos,
        register_solver as register_solver,
    )

__version__ = "0.1.0"

NAMES = {
    "saddlesvm.data.store": "Store",
    "saddlesvm.estimators.automatic_C": "AutomaticC",
    "saddlesvm.estimators.certify": "certify",
    "saddlesvm.estimators.cross_validation": "LinearSVCCV",
    "saddlesvm.estimators.leave_one_out": "leave_one_out",
    "saddlesvm.estimators.linear": "LinearSVC LinearSVR",
    "saddlesvm.models.liblinear_models": "save_liblinear",
    "saddlesvm.models.persistence": "load save",
    "saddlesvm.estimators.register": "register_estimator",
    "saddlesvm.kernel.certify_kernel": "certify_kernel",
    "saddlesvm.kernel.kernel_pegasos": "KernelPegasos",
    "saddlesvm.kernel.svc": "NuSVC SVC",
    "saddlesvm.kernel.svm": "NuSVR OneClassSVM SVR",
    "saddlesvm.fit.outcome": "NotCertifiedWarning Outcome",
    "saddlesvm.losses": "register_loss",
    "saddlesvm.problem.certificate": "Certificate",
    "saddlesvm.solvers": "Auto DCD Newton Pegasos SDCA register_solver",
}
# Where each name is imported from, when it is first used.
HOMES = {name: home for home, names in NAMES.items() for name in names.split()}
__all__ = sorted(HOMES)
# Modules that are attributes of the package without an import of their own.
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
)

if not TYPE_CHECKING:  # so that a type checker reports a name that does not exist
    __getattr__, __dir__ = lazy_attributes(__name__, HOMES | dict.fromkeys(ROOMS, ""))
