"""The origin of a report (machine, versions, command), the progress of the lab on a terminal, and its data.

Data of experiments are taken from a given folder, from the cache folder, or from OpenML through scikit-learn.
"""

from __future__ import annotations

import os
import platform
import shlex
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from saddlesvm.data import DataError, read
from saddlesvm.fit.outcome import Record
from saddlesvm.runtime.bar import Bar
from saddlesvm.runtime.threads import usable_cores

PACKAGES = ("saddlesvm", "numpy", "scipy", "scikit-learn", "numba", "llvmlite", "pandas", "matplotlib", "plotly")
ENGINES = ("liblinear-official", "cyanure", "sklearn-contrib-lightning")
Answer = TypeVar("Answer")


def machine_rows() -> list[tuple[str, str]]:
    """Processor, cores, memory, system and versions, as pairs of words for a table."""
    rows = [
        ("processor", processor()),
        ("cores for this process", str(usable_cores())),
        ("memory", memory()),
        ("system", platform.platform()),
        ("Python", platform.python_version()),
    ]
    return rows + [(name, found) for name in (*PACKAGES, *ENGINES) if (found := installed(name))]


def processor() -> str:
    """Name of the processor, as far as the system reports it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def in_threads(work: Callable[[Any], Answer], pieces: Iterable[Any]) -> list[Answer]:
    """The results of independent pieces of work, in order, done on all usable cores; not for work that is timed."""
    with threadpool_limits(1), ThreadPoolExecutor(usable_cores()) as pool:
        return list(pool.map(work, pieces))


def memory() -> str:
    """Main memory in GiB; "unknown" where the system does not report it."""
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return "unknown"
    return f"{size / 2**30:.1f} GiB"


def installed(name: str) -> str:
    """Version of an installed distribution; empty if it is not there."""
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def command_line() -> str:
    """The command that this process was started with, the program by its bare name."""
    program, *arguments = sys.argv or ["python"]
    return shlex.join([Path(program).name or "python", *arguments])


class LabProgress:
    """A bar over all cells of a comparison or experiment, on standard error where that is a terminal.

    Parameters
    ----------
    total : int
        Pieces of work.
    shown : bool, default=True
    """

    def __init__(self, total: int, shown: bool = True) -> None:
        self.total, self.shown = total, shown
        self.words = ""
        self.gap = 1.0
        self.bar: Any = None

    def __enter__(self) -> LabProgress:
        if self.shown and sys.stderr.isatty():
            self.bar = Bar("count bar words elapsed", "starting", self.total)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar is not None:
            self.bar.stop()

    def begin(self, words: str) -> None:
        """Show the name of the present piece of work."""
        self.words, self.gap = words, 1.0
        self._show(words)

    def done(self) -> None:
        """Count one piece of work as done."""
        if self.bar is not None:
            self.bar.advance()

    def tick(self, epoch: float, estimate: float, seconds: float) -> None:
        """A slice of a fit is done."""
        self._show(f"{self.words}: epoch {epoch:.0f}, gap {self.gap:.1e}, {seconds:.1f} s")

    def __call__(self, record: Record, /) -> None:
        self.gap = record.relative_gap

    def _show(self, words: str) -> None:
        if self.bar is not None:
            self.bar.show(words)


OPENML = {"fashion-mnist": "Fashion-MNIST", "mnist": "mnist_784"}
PARTS = {"train": "train-images-idx3-ubyte.gz", "test": "t10k-images-idx3-ubyte.gz"}
TRAINING_IMAGES = 60_000
BLOOD_CELLS = "blood-cells.npz"
PHOTOGRAPHS = (
    "the set paultimothymooney/blood-cells on Kaggle, or BloodCells/images of "
    "github.com/BoucheDimitri/SOADML_DBouche_CVerluise"
)


def cache_folder() -> Path:
    """The folder used by default: ``$SADDLESVM_CACHE``, or saddlesvm in the user's cache."""
    named = os.environ.get("SADDLESVM_CACHE")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "saddlesvm"


def find(name: str, folder: str | os.PathLike[str] | None) -> Path | None:
    """A data file in the folder, or in the cache folder when none is named; None if it is not there."""
    path = (cache_folder() if folder is None else Path(folder)) / name
    return path if path.is_file() else None


def images(name: str, part: str, folder: str | os.PathLike[str] | None) -> tuple[np.ndarray, np.ndarray]:
    """Rows in [0, 1] (float32) and labels of a set of 28 x 28 images.

    Parameters
    ----------
    name : {"mnist", "fashion-mnist"}
    part : {"train", "test"}
    folder : path, optional
        Holds ``<name>/train-images-idx3-ubyte.gz`` and so on; without it, the cache folder, then OpenML.

    Raises
    ------
    DataError
        The files are not there, or OpenML cannot be reached.
    """
    path = find(f"{name}/{PARTS[part]}", folder)
    if path is not None:
        table = read(path, scale=1 / 255)
        return table.X, _labels(table.y)
    if folder is not None:
        raise DataError(f"{os.fspath(folder)}: has no {name}/{PARTS[part]}")
    X, y = _from_openml(name)
    chosen = slice(None, TRAINING_IMAGES) if part == "train" else slice(TRAINING_IMAGES, None)
    return np.ascontiguousarray(X[chosen], dtype=np.float32) / np.float32(255), y[chosen].astype(np.int64)


def blood_cells(folder: str | os.PathLike[str] | None) -> dict[str, np.ndarray]:
    """The arrays of ``blood-cells.npz``: images, label, label_names, split, source.

    Raises
    ------
    DataError
        The file is not there, or lacks an array.
    """
    path = find(BLOOD_CELLS, folder)
    if path is None:
        where = cache_folder() if folder is None else Path(folder)
        raise DataError(
            f"{where}: has no {BLOOD_CELLS}, and OpenML does not offer this set. Get its photographs ({PHOTOGRAPHS}), "
            f"make the file of them (python -m saddlesvm.lab.blood_photographs FOLDER {BLOOD_CELLS}; the FOLDER holds "
            "TRAIN and TEST), and name the folder that the file is in (--data DIR)"
        )
    wanted = ("images", "label", "label_names", "split", "source")
    with np.load(path, allow_pickle=False) as archive:
        missing = [name for name in wanted if name not in archive]
        if missing:
            raise DataError(f"{path}: holds no array {missing[0]!r}; needed are {', '.join(wanted)}")
        return {name: archive[name] for name in wanted}


def _from_openml(name: str) -> tuple[Any, Any]:
    from urllib.error import URLError

    from sklearn.datasets import fetch_openml

    home = cache_folder() / "openml"
    try:
        return fetch_openml(
            OPENML[name], version=1, data_home=str(home), as_frame=False, return_X_y=True, parser="liac-arff"
        )
    except (URLError, OSError, ValueError) as error:
        raise DataError(
            f"{name} is not in {cache_folder()}, and OpenML cannot be reached ({error}); "
            "name a folder that holds the data (--data DIR)"
        ) from None


def _labels(y: np.ndarray | None) -> np.ndarray:
    assert y is not None
    return y
