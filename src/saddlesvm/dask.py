"""Training on a Dask cluster: the public door to :mod:`saddlesvm.estimators.dask`."""

from saddlesvm.estimators.dask import ClusterLostError, LinearSVC, LinearSVR
from saddlesvm.estimators.dask_cv import LinearSVCCV

__all__ = ["ClusterLostError", "LinearSVC", "LinearSVCCV", "LinearSVR"]
