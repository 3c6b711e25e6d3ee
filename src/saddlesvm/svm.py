"""The names of ``sklearn.svm``, for programs that import them, and :func:`C_max`.

:func:`C_max` finds the smallest C with a weight other than zero, for every estimator.
``l1_min_c`` is scikit-learn's.
"""

from sklearn.svm import l1_min_c

from saddlesvm.estimators.C_range import C_max
from saddlesvm.estimators.linear import LinearSVC, LinearSVR
from saddlesvm.kernel.svc import SVC, NuSVC
from saddlesvm.kernel.svm import SVR, NuSVR, OneClassSVM

__all__ = [
    "SVC",
    "SVR",
    "C_max",
    "LinearSVC",
    "LinearSVR",
    "NuSVC",
    "NuSVR",
    "OneClassSVM",
    "l1_min_c",
]
