"""The names of ``sklearn.svm``, for programs that import them: ``from saddlesvm.svm import SVC``."""

from saddlesvm.estimators.linear import LinearSVC, LinearSVR
from saddlesvm.estimators.path import l1_min_c
from saddlesvm.estimators.svc import SVC, NuSVC
from saddlesvm.estimators.svm import SVR, NuSVR, OneClassSVM

__all__ = ["SVC", "SVR", "LinearSVC", "LinearSVR", "NuSVC", "NuSVR", "OneClassSVM", "l1_min_c"]
