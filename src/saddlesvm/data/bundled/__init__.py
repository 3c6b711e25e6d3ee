"""The data sets that come with the package.

``banknote``
    Banknote authentication: 1,372 x 4 (statistics of a wavelet transform of the photograph), labels 0 and 1.
    UCI Machine Learning Repository (V. Lohweg), CC BY 4.0.
``heart``
    Heart disease, processed Cleveland data: the 297 of 303 rows without a gap, x 13; label 1 where the diagnosis
    `num` is above 0. UCI Machine Learning Repository (A. Janosi, W. Steinbrunn, M. Pfisterer, R. Detrano), CC BY 4.0.
``toy``
    Two overlapping Gaussian blobs, generated: 2,000 x 2, labels -1 and 1, 1,000 each; unit variance, centres at
    (-1, -1) and (1, 1), so that the best possible classifier is right on 92.1 % of such points.
"""

from __future__ import annotations

from importlib.resources import as_file, files

import numpy as np

from saddlesvm.data.delimited import read_delimited
from saddlesvm.data.errors import DataError
from saddlesvm.data.sources import BUNDLED
from saddlesvm.data.table import Raw

__all__ = ["raw_bundled"]

_TOY_ROWS = 2000
_TOY_SEED = 20110317


def raw_bundled(name: str) -> tuple[Raw, str]:
    """Rows and labels of a bundled set, and its format.

    Raises
    ------
    DataError
        No bundled set has this name.
    """
    if name not in BUNDLED:
        raise DataError(f"no bundled data set is called {name!r}; there are {', '.join(BUNDLED)}")
    if name == "toy":
        return _toy(), "generated"
    with as_file(files(__name__) / f"{name}.csv") as path:
        raw = read_delimited(path, header=True)
        n_bytes = path.stat().st_size
    y = raw.y > 0
    return Raw(raw.X, y, raw.feature_names, raw.label_name, n_bytes), "csv"


def _toy() -> Raw:
    # RandomState, because its stream is frozen: the same points under every version of NumPy
    random = np.random.RandomState(_TOY_SEED)
    y = np.where(random.permutation(_TOY_ROWS) < _TOY_ROWS // 2, -1, 1)
    X = random.standard_normal((_TOY_ROWS, 2)) + y[:, None]
    return Raw(X, y)
