"""The names of ``sklearn.svm``, for programs that import them: ``from saddlesvm.svm import SVC``; and ``C_max``.

:func:`C_max` finds the C of the first weight for every estimator, as ``l1_min_c`` does for one.
"""

from saddlesvm.estimators.linear import LinearSVC, LinearSVR
from saddlesvm.estimators.path import C_max, l1_min_c
from saddlesvm.kernel.svc import SVC, NuSVC
from saddlesvm.kernel.svm import SVR, NuSVR, OneClassSVM

__all__ = ["SVC", "SVR", "C_max", "LinearSVC", "LinearSVR", "NuSVC", "NuSVR", "OneClassSVM", "l1_min_c"]
