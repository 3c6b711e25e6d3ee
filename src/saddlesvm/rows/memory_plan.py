"""Division of data that do not fit into memory into blocks: from the given memory follow the rows per block."""

from __future__ import annotations

import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from saddlesvm.rows import layouts as rows
from saddlesvm.rows.files import is_mapped
from saddlesvm.rows.layouts import Rows

UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
FITS = 0.5  # share of the memory; mapped data up to this size are trained on in place
BLOCKS_SHARE = 0.55  # share of the memory for the two blocks held at once; the rest is for the rows' variables
KEPT_SHARE = 0.12  # share of the memory for rows that are kept from one block to the end of the sweep
VARIABLES_SHARE = 0.25  # share of the memory; larger variables of the rows go to a mapped file
RESERVE = 96 * 2**20  # bytes for compiled code and small arrays, at most a fifth of the memory
FEWEST_BLOCKS = 8  # blocks per sweep where data are cut: reading ahead then hides all but the first block
CHUNK_BYTES = 1 << 22  # bytes of neighbouring rows per read
FEWEST_CHUNKS = 24  # chunks per block, so that each sweep can mix them anew
WORK_BYTES = 40  # bytes per row of the present block: labels, order, members, former variables, steps
CLASS_BYTES = 48  # the same for each class of a joint machine: variables, former ones, order, scores
WEIGHTS_AT_WORK = 4  # weight vectors of the solver and the certificate, at least, besides those of the model (measured)
FEW_WEIGHTS = 2**26  # bytes that are always there
LEAST_MEMORY = 16 * 2**20


@dataclass(frozen=True)
class MemoryPlan:
    """The plan by which training reads data in files.

    Attributes
    ----------
    memory : int
        Bytes that training may take.
    edges : ndarray of shape (n_chunks + 1,)
        The first row of each chunk, and the number of rows.
    per_block : int
        Chunks in a block.
    mapped : bool
        The variables of the rows are kept in a file too.
    folder : str or None
        The folder of that file; None for the system's folder for temporary files.
    kept_share : float
        Share of the memory for rows that are kept from one block to the end of the sweep.
    """

    memory: int
    edges: np.ndarray
    per_block: int
    mapped: bool
    folder: str | None = None
    kept_share: float = KEPT_SHARE

    @property
    def kept_bytes(self) -> int:
        """Bytes for rows that are kept from one block to the end of the sweep."""
        return int(self.kept_share * self.memory)

    def row_array(self, shape: tuple[int, ...]) -> np.ndarray:
        """Zeros with an entry for each row: in memory, or in a nameless file that vanishes with the process."""
        if not self.mapped:
            return np.zeros(shape)
        with tempfile.TemporaryFile(dir=self.folder, prefix="saddlesvm-") as file:
            file.truncate(8 * int(np.prod(shape)))
            return np.asarray(np.memmap(file, dtype=np.float64, mode="r+", shape=shape))


def memory_bytes(memory: Any) -> int:
    """Bytes from a number of them, or from text such as ``"512M"`` or ``"1.5G"`` (powers of 1,024).

    Raises
    ------
    ValueError
        It is neither, or less than 16M.
    """
    given = memory
    if isinstance(memory, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([KMGT]?)(?:i?B)?\s*", memory, re.I)
        if not found:
            raise ValueError(f"memory must be bytes, or text such as '512M' or '1.5G'; got {memory!r}")
        memory = float(found[1]) * UNITS[found[2].upper()]
    if isinstance(memory, bool) or not isinstance(memory, (int, float, np.number)) or not np.isfinite(memory):
        raise ValueError(f"memory must be bytes, or text such as '512M' or '1.5G'; got {memory!r}")
    if memory < LEAST_MEMORY:
        raise ValueError(f"memory must be at least {LEAST_MEMORY >> 20}M; got {given!r}")
    return int(memory)


def available_memory() -> int:
    """Bytes of memory that the system reports as available."""
    limits = [2**63]
    try:
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return 2**62
    for path, pattern in (("/proc/meminfo", r"MemAvailable:\s*(\d+) kB"), ("/sys/fs/cgroup/memory.max", r"(\d+)")):
        try:
            found = re.search(pattern, Path(path).read_text())
        except OSError:
            continue
        if found:
            limits.append(int(found[1]) * (1024 if "kB" in pattern else 1))
    return min(limits)


def demand_room_for_weights(width: int, vectors: int = 1) -> None:
    """Raise where the weights of a model are larger than the memory that is available.

    Parameters
    ----------
    width : int
        Weights of a vector, the intercept's included.
    vectors : int, default=1
        Weight vectors of the model.

    Raises
    ------
    ValueError
        The weight vectors of the model, and those of the solver and the certificate of one, are too many bytes.
    """
    needed = 8 * width * (vectors + WEIGHTS_AT_WORK)
    if needed > FEW_WEIGHTS and needed > (there := available_memory()):
        raise ValueError(
            f"{width - 1:,} features are too many for this machine: {vectors} x {width:,} weights and the work on them "
            f"take at least {needed / 2**30:.3g} GiB of memory, of which {there / 2**30:.3g} GiB are available; leave "
            "out the columns without values (X[:, np.unique(X.indices)]), or hash the features to fewer columns"
        )


def does_not_fit(X: Any, memory: int | None) -> bool:
    """Whether X is mapped from files and larger than half of the given (or else the available) memory."""
    if not is_mapped(X):
        return False
    size = rows.as_rows(X).nbytes
    return size > FITS * (available_memory() if memory is None else memory)


class Burden(NamedTuple):
    """The memory that training needs for each row besides its values.

    Attributes
    ----------
    problems : int
        Number of problems solved side by side.
    variables : int, default=1
        Numbers that each problem keeps of a row.
    share : float, default=1.0
        Of the rows, that each problem has: those that have less than all keep the numbers of their rows.
    classes : int, default=1
        Numbers that make up a variable: of a joint machine one a class.
    held : int, default=0
        Bytes besides, whatever the number of rows: weights and matrices, where they are large.
    kept : float, default=KEPT_SHARE
        Share of the memory for rows that are kept from one block to the end of the sweep.
    weights : int, default=1
        Arrays of row weights.
    """

    problems: int
    variables: int = 1
    share: float = 1.0
    classes: int = 1
    held: int = 0
    kept: float = KEPT_SHARE
    weights: int = 1

    @property
    def of_row(self) -> int:
        """Bytes of a row's variables, its norm among them."""
        return 8 * (self.variables * self.problems * self.classes + 1)

    @property
    def of_work(self) -> int:
        """Bytes of the work on a row of the present block."""
        return WORK_BYTES + (CLASS_BYTES * self.classes if self.classes > 1 else 0)

    def variables_of(self, n: int) -> tuple[int, ...]:
        """The shape of a variable of all problems for n rows."""
        if self.variables == 0:
            return (self.problems, 0)
        return (self.problems, n) if self.classes == 1 else (self.problems, n, self.classes)

    @property
    def of_label(self) -> float:
        """Bytes of a row's labels and weights, and of its number in the lists of all problems that have it."""
        lists = 1.0 if self.share >= 1.0 else self.problems * self.share
        return self.problems + 8.0 * self.weights + 4.0 * lists

    @property
    def judges(self) -> int:
        """Problems for which the margins of all rows are computed while these are read."""
        return self.problems if self.share >= 0.5 and self.classes == 1 else 0


def make_plan(
    X: Rows, memory: int | None, problems: int | Burden, folder: str | None = None, most_rows: int = 0
) -> MemoryPlan:
    """Cut the rows into chunks of about equal bytes, so that two blocks and all else fit into the memory.

    Parameters
    ----------
    X : Dense or CSR
    memory : int or None
        Bytes; None for half of what is available.
    problems : int or Burden
        Number of problems solved side by side, or all that is kept of a row.
    folder : str, optional
        Holds the file of the rows' variables, where they are too many for the memory.
    most_rows : int, default=0
        Most rows of a block; 0 for as many as the memory allows.

    Raises
    ------
    ValueError
        The memory is too small for even a single row.
    """
    memory = memory or available_memory() // 2
    n, burden = X.n_rows, problems if isinstance(problems, Burden) else Burden(problems)
    of_rows = n * burden.of_row
    mapped = of_rows > VARIABLES_SHARE * memory
    kept = int(n * burden.of_label) + (0 if mapped else of_rows) + burden.held
    room = min(BLOCKS_SHARE * memory, (1.0 - burden.kept) * memory - kept - min(RESERVE, memory // 5))
    size = X.nbytes
    a_row = size / n + 8 * burden.judges + burden.of_work / 2
    block_rows = int(room / 2 / a_row)
    if block_rows < 1:
        raise ValueError(
            f"memory={memory} is too small: {n:,} rows need {kept:,} bytes besides their values; give more memory"
        )
    block_rows = min(block_rows, -(-n // FEWEST_BLOCKS), most_rows or n)
    per_block = min(max(FEWEST_CHUNKS, int(block_rows * size / n / CHUNK_BYTES)), block_rows)
    edges = _edges(X, n, -(-n * per_block // block_rows))
    return MemoryPlan(memory, edges, per_block, mapped, folder, burden.kept)


def _edges(X: Rows, n: int, count: int) -> np.ndarray:
    """The first row of each of `count` chunks of about the same number of bytes, and n."""
    if not X.sparse:
        edges = np.linspace(0, n, count + 1).round()
    else:
        weight = X.data.itemsize + X.indices.itemsize
        per_row = X.indptr.itemsize + WORK_BYTES
        total = int(X.indptr[-1]) * weight + n * per_row
        edges = np.array([_row_at(X, total * k / count, weight, per_row) for k in range(count + 1)], dtype=np.float64)
        edges[0], edges[-1] = 0, n
    return np.unique(edges.astype(np.int64))


def _row_at(X: Any, size: float, weight: int, per_row: int) -> int:
    """The first row before which there are at least `size` bytes, by bisection on the mapped row pointers."""
    low, high = 0, X.indptr.size - 1
    while low < high:
        middle = (low + high) // 2
        if int(X.indptr[middle]) * weight + middle * per_row < size:
            low = middle + 1
        else:
            high = middle
    return low
