"""Make ``blood-cells.npz`` of the public photographs: grey squares around the stained nuclei.

The photographs are the set *blood-cells* (P. Mooney, made of BCCD, MIT licence): 12,444 pictures of
320 x 240 pixels, turned and shifted copies of some 350 photographs, in
``TRAIN/<CLASS>/_<source>_<copy>.jpeg`` and ``TEST/...``. It is on Kaggle
(paultimothymooney/blood-cells, folder ``dataset2-master``), and in ``BloodCells/images`` of the
repository of the report that the experiment repeats
(github.com/BoucheDimitri/SOADML_DBouche_CVerluise).

The nucleus is the largest dark spot: the darkest 2 % of the blurred green, without specks and
without the black frame that rotations leave. The square of 120 x 120 pixels around it is moved
inside the picture, and reduced to 32 x 32.

python -m experiments.blood_photographs FOLDER [blood-cells.npz]
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from pathlib import Path

import numpy as np
from PIL import Image, UnidentifiedImageError
from scipy import ndimage

from saddlesvm.data import DataError, atomic_write
from saddlesvm.lab import run_in_threads

CLASSES = ("eosinophil", "lymphocyte", "monocyte", "neutrophil")
SPLITS = ("TRAIN", "TEST")
NAME = re.compile(r"_(\d+)_(\d+)\.jpe?g", re.IGNORECASE)
# Pixels of the square that is cut out, and of its image.
SQUARE = 120
SIDE = 32
STEP = 2  # the nucleus is searched in every second row and column
FRAME = 60  # brightness below which a pixel may be of the frame
MARGIN = 3  # pixels by which the frame is widened
BLUR = 2.0  # standard deviation, in pixels
DARKEST = 2.0  # percentage of the picture that counts as dark
SMALLER = 0.25  # dark spots of this share of the largest one belong to the nucleus, too
ENDING = "blood-cells.npz"


def nucleus(photograph: np.ndarray) -> tuple[float, float]:
    """Return row and column of the middle of the nucleus; the picture's middle if there is none.

    Parameters
    ----------
    photograph : ndarray of shape (height, width, 3), uint8
    """
    small = photograph[::STEP, ::STEP].astype(np.float32)
    # The frame counts as bright.
    frame = ndimage.binary_dilation(small.max(axis=2) < FRAME, iterations=MARGIN)
    green = np.where(frame, np.float32(255), ndimage.gaussian_filter(small[:, :, 1], BLUR))
    inside = green[~frame]
    darkest = np.percentile(inside, DARKEST) if inside.size else 0.0
    dark = green <= darkest
    # Opening removes specks.
    spots, count = ndimage.label(ndimage.binary_opening(dark, np.ones((3, 3))))
    if count == 0:
        return photograph.shape[0] // 2, photograph.shape[1] // 2
    sizes = np.bincount(spots.ravel())
    sizes[0] = 0
    row, column = ndimage.center_of_mass((sizes >= SMALLER * sizes.max())[spots])
    return STEP * row, STEP * column


def crop(photograph: np.ndarray) -> np.ndarray:
    """Return the grey square around the nucleus, shape (SIDE, SIDE), uint8."""
    height, width = photograph.shape[:2]
    row, column = nucleus(photograph)
    top = int(np.clip(row - SQUARE / 2, 0, height - SQUARE))
    left = int(np.clip(column - SQUARE / 2, 0, width - SQUARE))
    square = Image.fromarray(photograph[top : top + SQUARE, left : left + SQUARE]).convert("L")
    return np.asarray(square.resize((SIDE, SIDE), Image.Resampling.BOX))


def list_photographs(
    folder: str | os.PathLike[str],
) -> list[tuple[int, int, int, int, Path]]:
    """Return split, label, source, copy and path of every photograph, in this order.

    Raises
    ------
    DataError
        The folder does not hold a ``TRAIN`` and a ``TEST`` with a folder for each class.
    """
    found = []
    for split, part in enumerate(SPLITS):
        for label, name in enumerate(CLASSES):
            cell = Path(folder) / part / name.upper()
            named = []
            for path in cell.glob("*"):
                match = NAME.fullmatch(path.name)
                if match:
                    named.append((split, label, int(match[1]), int(match[2]), path))
            if not named:
                wanted = f"{part}/{name.upper()}/_<source>_<copy>.jpeg"
                advice = f"name the folder that holds {' and '.join(SPLITS)}"
                raise DataError(f"{os.fspath(folder)}: has no photographs {wanted}; {advice}")
            found += named
    return sorted(found)


def read_crop(path: Path) -> np.ndarray:
    """Read a photograph, and return its crop."""
    try:
        with Image.open(path) as picture:
            pixels = np.asarray(picture.convert("RGB"))
    except (UnidentifiedImageError, OSError) as error:
        raise DataError(f"{path}: is not a readable photograph ({error})") from None
    if min(pixels.shape[:2]) < SQUARE:
        height, width = pixels.shape[:2]
        raise DataError(
            f"{path}: is {width} x {height} pixels; at least {SQUARE} x {SQUARE} are needed"
        )
    return crop(pixels)


def make_file(
    folder: str | os.PathLike[str], path: str | os.PathLike[str]
) -> dict[str, np.ndarray]:
    """Write the arrays of ``blood-cells.npz``, and return them.

    Parameters
    ----------
    folder : path
        Holds ``TRAIN`` and ``TEST``.
    path : path
        The file to write.

    Returns
    -------
    dict of str to ndarray
        images, uint8 of shape (n, 32, 32); label and split, uint8; source, int16: the copies of one
        photograph share it; label_names.

    Raises
    ------
    DataError
        Photographs are missing or cannot be read, or the file cannot be written.
    """
    rows = list_photographs(folder)
    # Copies of a photograph share split, label and source.
    sources = sorted({row[:3] for row in rows})
    number = {source: place for place, source in enumerate(sources)}
    arrays = {
        "images": np.stack(run_in_threads(read_crop, [row[4] for row in rows])),
        "label": np.array([row[1] for row in rows], dtype=np.uint8),
        "split": np.array([row[0] for row in rows], dtype=np.uint8),
        "source": np.array([number[row[:3]] for row in rows], dtype=np.int16),
        "label_names": np.array(CLASSES),
    }
    with atomic_write(path) as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    return arrays


def main(words: list[str] | None = None) -> int:
    """Make the file of the photographs in a folder; return 2 if the folder or the file is wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.blood_photographs", description=main.__doc__
    )
    parser.add_argument("folder", metavar="FOLDER", help="the photographs: it holds TRAIN and TEST")
    parser.add_argument(
        "path",
        metavar="PATH",
        nargs="?",
        default=ENDING,
        help=f"the file to write (default: {ENDING})",
    )
    options = parser.parse_args(words)
    try:
        arrays = make_file(options.folder, options.path)
    except DataError as error:
        print(f"blood_photographs: {error}", file=sys.stderr)
        return 2
    train = int((arrays["split"] == 0).sum())
    total = len(arrays["label"])
    sources = len(np.unique(arrays["source"]))
    print(
        f"{options.path}: {total:,} images of {sources} photographs, {train:,} of them to train on"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
