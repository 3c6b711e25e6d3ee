"""The data of the dual-coordinate-descent tables, split as published: a third of the rows held out."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from saddlesvm.data import read
from saddlesvm.lab.dataset import Dataset, make_dataset
from saddlesvm.lab.sources import images

HELD_OUT = 0.33
ONE, SEVEN = 1, 7
FIRST_IMAGES = 50_000
SCALED = "heart, scaled"


def split_rows(X: np.ndarray, y: np.ndarray, name: str, seed: int) -> Dataset:
    """Rows with a third held out, as scikit-learn's splitter draws them for this seed."""
    train, test, own, others = train_test_split(X, y, test_size=HELD_OUT, random_state=seed)
    if name == SCALED:
        scaler = StandardScaler().fit(train)
        train, test = scaler.transform(train), scaler.transform(test)
    return make_dataset(train, own, test=(test, others), name=name)


def held_out(name: str, seed: int = 0) -> Dataset:
    """A bundled set, its columns scaled where the name says so, with a third of its rows held out."""
    table = read(name.partition(",")[0])
    assert table.y is not None
    return split_rows(table.X, table.y, name, seed)


def digits(part: str, folder: Any) -> tuple[np.ndarray, np.ndarray]:
    """Ones and sevens; of the training part those among the first 50,000 images."""
    X, y = images("mnist", part, folder)
    last = FIRST_IMAGES if part == "train" else len(y)
    chosen = np.flatnonzero(np.isin(y[:last], (ONE, SEVEN)))
    return X[chosen], y[chosen]
