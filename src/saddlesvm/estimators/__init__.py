"""The estimators that users see, with scikit-learn's interface."""

from saddlesvm.estimators.linear import LinearSVC, LinearSVR

__all__ = ["LinearSVC", "LinearSVR"]
