"""Training on a Dask cluster: the public door to :mod:`saddlesvm.estimators.dask`."""

from saddlesvm.estimators.dask import *  # noqa: F403
from saddlesvm.estimators.dask import __all__ as __all__
