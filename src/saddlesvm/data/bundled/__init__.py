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

from dataclasses import replace
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np

from saddlesvm.data.blocks import Block, Reading, Source
from saddlesvm.data.delimited import delimited_source

_TOY_ROWS = 2000
_TOY_SEED = 20110317


def bundled_source(path: Path, how: Reading) -> Source:
    """The rows and labels of the bundled set that `path` names."""
    name = str(path)
    if name == "toy":
        block = toy()
        return Source(name, "generated", False, 2, block.X.dtype, True, 0, lambda n_bytes: iter([block]))
    with as_file(files(__name__) / f"{name}.csv") as file:
        found = delimited_source(file, Reading(header=True))
        block = found.rows()
    plain = block._replace(y=block.y.values() > 0)
    return replace(found, name=name, blocks=lambda n_bytes: iter([plain]))


def toy() -> Block:
    """The generated set."""
    # RandomState, because its stream is frozen: the same points under every version of NumPy
    random = np.random.RandomState(_TOY_SEED)
    y = np.where(random.permutation(_TOY_ROWS) < _TOY_ROWS // 2, -1, 1)
    return Block(random.standard_normal((_TOY_ROWS, 2)) + y[:, None], y)
