"""The names of saddlesvm on a Dask cluster: the usual classes, which take Dask arrays, too.

New code writes ``from saddlesvm import LinearSVC``.
"""

from saddlesvm.cluster.fits import ClusterLostError
from saddlesvm.estimators.linear import LinearSVC, LinearSVR

__all__ = ["ClusterLostError", "LinearSVC", "LinearSVR"]
