"""The estimators that users see, with scikit-learn's interface."""

from __future__ import annotations

from typing import TYPE_CHECKING

from saddlesvm.runtime.lazy import lazy_attributes

if TYPE_CHECKING:
    from saddlesvm.estimators.linear import LinearSVC, LinearSVR

__all__ = ["LinearSVC", "LinearSVR"]

# The package's own estimators, in the order in which the command line and the register list them.
HOMES = {
    "LinearSVC": "saddlesvm.estimators.linear",
    "LinearSVR": "saddlesvm.estimators.linear",
    "SVC": "saddlesvm.kernel.svc",
    "NuSVC": "saddlesvm.kernel.svc",
    "SVR": "saddlesvm.kernel.svm",
    "NuSVR": "saddlesvm.kernel.svm",
    "OneClassSVM": "saddlesvm.kernel.svm",
}

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_attributes(__name__, HOMES)
