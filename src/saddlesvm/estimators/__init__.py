"""The estimators that users see, with scikit-learn's interface."""

from saddlesvm.estimators.linear_svc import LinearSVC
from saddlesvm.estimators.linear_svr import LinearSVR

__all__ = ["LinearSVC", "LinearSVR"]
