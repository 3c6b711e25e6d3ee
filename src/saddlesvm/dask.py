"""Training on a Dask cluster: the public door to :mod:`saddlesvm.estimators.dask`."""

from saddlesvm.estimators.dask import ClusterLostError, LinearSVC
from saddlesvm.estimators.dask_cv import LinearSVCCV
from saddlesvm.estimators.dask_svr import LinearSVR

__all__ = ["ClusterLostError", "LinearSVC", "LinearSVCCV", "LinearSVR"]
