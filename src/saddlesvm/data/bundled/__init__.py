"""The data sets that come with the package, read or generated.

``banknote``
    Banknote authentication: 1,372 x 4 (statistics of a wavelet transform of the photograph), labels
    0 and 1. UCI Machine Learning Repository (V. Lohweg), CC BY 4.0.
``heart``
    Heart disease, processed Cleveland data: the 297 of 303 rows without a gap, x 13; label 1 if the
    diagnosis `num` is above 0. UCI Machine Learning Repository (A. Janosi, W. Steinbrunn, M.
    Pfisterer, R. Detrano), CC BY 4.0.
``toy``
    Two overlapping Gaussian blobs, generated: 2,000 x 2, labels -1 and 1, 1,000 each; unit
    variance, centres at (-1, -1) and (1, 1), so that the best possible classifier is right on
    92.1 % of such points.
"""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np

from saddlesvm.data.blocks import Block, Source
from saddlesvm.data.delimited import delimited_source
from saddlesvm.data.reading import Reading

_TOY_ROWS = 2000
_TOY_SEED = 20110317  # any number would do


def bundled_source(path: Path, how: Reading) -> Source:
    """Return the bundled set that `path` names as a source."""
    name = str(path)
    if name == "toy":
        generated = make_toy()
        return Source(
            name,
            "generated",
            sparse=False,
            width=2,
            dtype=generated.X.dtype,
            has_labels=True,
            n_bytes=0,
            blocks=lambda n_bytes: iter([generated]),
        )
    with as_file(files(__name__) / f"{name}.csv") as file:
        source = delimited_source(file, Reading(header=True))
        block = source.rows()
    # Labels 0 and 1, for the diagnoses of "heart", too.
    block = block._replace(y=block.y > 0)
    return replace(source, name=name, blocks=lambda n_bytes: iter([block]))


def make_toy() -> Block:
    """Generate the set "toy"."""
    # RandomState, because its stream is frozen: the same points under every version of NumPy.
    random = np.random.RandomState(_TOY_SEED)
    y = np.where(random.permutation(_TOY_ROWS) < _TOY_ROWS // 2, -1, 1)
    return Block(random.standard_normal((_TOY_ROWS, 2)) + y[:, None], y)
