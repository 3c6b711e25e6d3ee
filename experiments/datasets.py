"""The data of the experiments: from a given folder, the cache folder, or OpenML."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from saddlesvm.data import DataError, read

OPENML = {"fashion-mnist": "Fashion-MNIST", "mnist": "mnist_784"}  # our names, and OpenML's
PARTS = {"train": "train-images-idx3-ubyte.gz", "test": "t10k-images-idx3-ubyte.gz"}
TRAINING_IMAGES = 60_000  # of both sets; the test images follow in OpenML's files
BLOOD_CELLS = "blood-cells.npz"
PHOTOGRAPHS = (
    "the set paultimothymooney/blood-cells on Kaggle, or BloodCells/images of "
    "github.com/BoucheDimitri/SOADML_DBouche_CVerluise"
)


def cache_folder() -> Path:
    """Return the default folder: ``$SADDLESVM_CACHE``, or saddlesvm in the user's cache."""
    named = os.environ.get("SADDLESVM_CACHE")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "saddlesvm"


def find_file(name: str, folder: str | os.PathLike[str] | None) -> Path | None:
    """Return the path of a data file, by default in the cache folder; None if it is missing."""
    path = (cache_folder() if folder is None else Path(folder)) / name
    return path if path.is_file() else None


def images(
    name: str, part: str, folder: str | os.PathLike[str] | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return rows in [0, 1] (float32) and labels of a set of 28 x 28 images.

    Parameters
    ----------
    name : {"mnist", "fashion-mnist"}
    part : {"train", "test"}
    folder : path, optional
        Holds ``<name>/train-images-idx3-ubyte.gz`` and so on; without it, the cache folder, then
        OpenML.

    Raises
    ------
    DataError
        The files are not there, or OpenML cannot be reached.
    """
    path = find_file(f"{name}/{PARTS[part]}", folder)
    if path is not None:
        table = read(path)
        assert table.y is not None
        return table.X.astype(np.float32) / np.float32(255), table.y
    if folder is not None:
        raise DataError(f"{os.fspath(folder)}: has no {name}/{PARTS[part]}")
    X, y = fetch_images(name)
    rows = slice(TRAINING_IMAGES) if part == "train" else slice(TRAINING_IMAGES, None)
    pixels = np.ascontiguousarray(X[rows], dtype=np.float32) / np.float32(255)
    return pixels, y[rows].astype(np.int64)


def blood_cells(folder: str | os.PathLike[str] | None) -> dict[str, np.ndarray]:
    """Return the arrays of ``blood-cells.npz``: images, label, label_names, split, source.

    Raises
    ------
    DataError
        The file is not there, or lacks an array.
    """
    path = find_file(BLOOD_CELLS, folder)
    if path is None:
        where = cache_folder() if folder is None else Path(folder)
        raise DataError(
            f"{where}: has no {BLOOD_CELLS}, and OpenML does not offer this set. Get its "
            f"photographs ({PHOTOGRAPHS}), "
            f"make the file of them (python -m experiments.blood_photographs FOLDER "
            f"{BLOOD_CELLS}; the FOLDER holds "
            "TRAIN and TEST), and name the folder that the file is in (--data DIR)"
        )
    wanted = ("images", "label", "label_names", "split", "source")
    with np.load(path, allow_pickle=False) as archive:
        missing = [name for name in wanted if name not in archive]
        if missing:
            raise DataError(
                f"{path}: holds no array {missing[0]!r}; needed are {', '.join(wanted)}"
            )
        return {name: archive[name] for name in wanted}


def fetch_images(name: str) -> tuple[Any, Any]:
    """Return rows and labels of a set of images from OpenML."""
    from urllib.error import URLError

    from sklearn.datasets import fetch_openml

    home = cache_folder() / "openml"
    try:
        return fetch_openml(
            OPENML[name],
            version=1,
            data_home=str(home),
            as_frame=False,
            return_X_y=True,
            parser="liac-arff",
        )
    except (URLError, OSError, ValueError) as error:
        raise DataError(
            f"{name} is not in {cache_folder()}, and OpenML cannot be reached ({error}); "
            "name a folder that holds the data (--data DIR)"
        ) from None
