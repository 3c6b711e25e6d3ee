"""Divide data that do not fit into memory into blocks: how many rows a block has, for a memory."""

from __future__ import annotations

import os
import re
import tempfile
from bisect import bisect_left
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from saddlesvm.rows import layouts as rows
from saddlesvm.rows.files import is_mapped
from saddlesvm.rows.layouts import Rows

if TYPE_CHECKING:
    from saddlesvm.runtime.data_types import Matrix

UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}

# Shares of the memory; guesses that leave room for each other.
FITS = 0.5  # mapped data up to this size are trained on in place
BLOCKS_SHARE = 0.55  # for the two blocks held at once; the rest is for the variables of the rows
KEPT_SHARE = 0.12  # for rows that are kept from their block to the end of the sweep
VARIABLES_SHARE = 0.25  # larger variables of the rows go to a mapped file

RESERVE = 96 * 2**20  # bytes for compiled code and small arrays, if they are at most RESERVE_SHARE
RESERVE_SHARE = 5  # at most a fifth of the memory is reserved
FEWEST_BLOCKS = 8  # blocks of a sweep: reading ahead then hides all but the first one
CHUNK_BYTES = 1 << 22  # bytes of neighbouring rows that are read together; a guess
FEWEST_CHUNKS = 24  # chunks of a block, so that each sweep can mix them anew; a guess
# Bytes for a row of the present block: labels, order, members, steps, margins; derived.
WORK_BYTES = 48
CLASS_BYTES = 48  # the same for each class of a joint machine: variables, order, scores; derived
# Weight vectors of the solver and the certificate, at least, besides those of the model; measured.
WEIGHTS_AT_WORK = 4
FEW_WEIGHTS = 2**26  # bytes that every machine has
LEAST_MEMORY = 16 * 2**20  # bytes


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
        True if the variables of the rows are kept in a file, too.
    folder : str or None
        The folder of that file; None for the system's folder for temporary files.
    kept_share : float
        Share of the memory for rows that are kept from their block to the end of the sweep.
    """

    memory: int
    edges: np.ndarray
    per_block: int
    mapped: bool
    folder: str | None = None
    kept_share: float = KEPT_SHARE

    @property
    def kept_bytes(self) -> int:
        """Bytes for rows that are kept from their block to the end of the sweep."""
        return int(self.kept_share * self.memory)

    def row_array(self, shape: tuple[int, ...]) -> np.ndarray:
        """Return zeros with an entry for each row, in memory or in a nameless temporary file."""
        if not self.mapped:
            return np.zeros(shape)
        with tempfile.TemporaryFile(dir=self.folder, prefix="saddlesvm-") as file:
            file.truncate(8 * int(np.prod(shape)))
            return np.asarray(np.memmap(file, dtype=np.float64, mode="r+", shape=shape))


def memory_bytes(memory: Any) -> int:
    """Return bytes from a number, or from text such as ``"512M"`` or ``"1.5G"`` (powers of 1,024).

    Raises
    ------
    ValueError
        It is neither, or less than 16M.
    """
    n_bytes = memory
    if isinstance(memory, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([KMGT]?)(?:i?B)?\s*", memory, re.I)
        # A number, an optional unit and an optional B or iB.
        n_bytes = None
        if match:
            n_bytes = float(match[1]) * UNITS[match[2].upper()]
    is_number = isinstance(n_bytes, (int, float, np.number)) and not isinstance(n_bytes, bool)
    if not is_number or not np.isfinite(n_bytes):
        raise ValueError(f"memory must be bytes, or text such as '512M' or '1.5G'; got {memory!r}")
    if n_bytes < LEAST_MEMORY:
        raise ValueError(f"memory must be at least {LEAST_MEMORY >> 20}M; got {memory!r}")
    return int(n_bytes)


def available_memory() -> int:
    """Return the bytes of memory that the system reports as available."""
    limits = [2**63]
    try:
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        # Windows does not say: there is no limit then.
        return 2**62
    # What Linux reports, and the limit of a container.
    reports = (
        ("/proc/meminfo", r"MemAvailable:\s*(\d+) kB", 1024),
        ("/sys/fs/cgroup/memory.max", r"(\d+)", 1),
    )
    for path, pattern, unit in reports:
        try:
            match = re.search(pattern, Path(path).read_text())
        except OSError:
            continue
        if match:
            limits.append(int(match[1]) * unit)
    return min(limits)


def demand_room_for_weights(width: int, vectors: int = 1) -> None:
    """Raise an error if the weights of a model are larger than the memory that is available.

    Parameters
    ----------
    width : int
        Weights of a vector, with the intercept.
    vectors : int, default=1
        Weight vectors of the model.

    Raises
    ------
    ValueError
        The weight vectors of the model, the solver and the certificate are too many
        bytes.
    """
    needed = 8 * width * (vectors + WEIGHTS_AT_WORK)
    # So few bytes are always there: the system is not asked.
    if needed <= FEW_WEIGHTS:
        return
    available = available_memory()
    if needed > available:
        raise ValueError(
            f"{width - 1:,} features are too many for this machine: {vectors} x {width:,} weights "
            f"and the work on them take at least {needed / 2**30:.3g} GiB of memory, of which "
            f"{available / 2**30:.3g} GiB are available; leave out the columns without values "
            "(X[:, np.unique(X.indices)]), or hash the features to fewer columns"
        )


def does_not_fit(X: Matrix, memory: int | None) -> bool:
    """Return True if X is mapped from files, and larger than half of the memory."""
    if not is_mapped(X):
        return False
    size = rows.as_rows(X).nbytes
    return size > FITS * (available_memory() if memory is None else memory)


class Burden(NamedTuple):
    """The memory that training needs for each row besides its values.

    Attributes
    ----------
    problems : int
        Number of problems that are solved side by side.
    variables : int, default=1
        Numbers that each problem keeps of a row; a joint machine keeps none.
    share : float, default=1.0
        Share of the rows that each problem has; with less than all, it keeps their numbers, too.
    classes : int, default=1
        Classes of a joint machine.
    held : int, default=0
        Bytes besides, for any number of rows: weights and matrices, if they are large.
    kept : float, default=KEPT_SHARE
        Share of the memory for rows that are kept from their block to the end of the sweep.
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
        """Bytes of a row's variables and its norm."""
        return 8 * (self.variables * self.problems + 1)

    @property
    def of_work(self) -> int:
        """Bytes of the work on a row of the present block."""
        return WORK_BYTES + (CLASS_BYTES * self.classes if self.classes > 1 else 0)

    @property
    def of_label(self) -> float:
        """Bytes of a row's labels and weights, and of its number in the problems' lists of rows."""
        lists = 1.0 if self.share >= 1.0 else self.problems * self.share
        return self.problems + 8.0 * self.weights + 4.0 * lists


def make_plan(
    X: Rows,
    memory: int | None,
    problems: int | Burden,
    folder: str | None = None,
) -> MemoryPlan:
    """Cut the rows into chunks of about equal bytes, so that two blocks and all else fit.

    Parameters
    ----------
    X : Dense or CSR
    memory : int or None
        Bytes; None for half of what is available.
    problems : int or Burden
        Number of problems that are solved side by side, or all that is kept of a row.
    folder : str, optional
        Holds the file of the rows' variables if they are too many for the memory.

    Raises
    ------
    ValueError
        The memory is too small for even a single row.
    """
    memory = memory or available_memory() // 2
    n = X.n_rows
    size = X.nbytes
    burden = problems if isinstance(problems, Burden) else Burden(problems)

    # What stays in memory throughout: labels, and variables if they are few.
    variables = n * burden.of_row
    mapped = variables > VARIABLES_SHARE * memory
    kept = int(n * burden.of_label) + (0 if mapped else variables) + burden.held

    # The rest is for two blocks: the present one, on which work is done, and the next one.
    reserve = min(RESERVE, memory // RESERVE_SHARE)
    room = min(BLOCKS_SHARE * memory, (1.0 - burden.kept) * memory - kept - reserve)
    row_bytes = size / n + burden.of_work / 2
    block_rows = int(room / 2 / row_bytes)
    if block_rows < 1:
        raise ValueError(
            f"memory={memory} is too small: {n:,} rows need {kept:,} bytes besides their values; "
            "give more memory"
        )
    block_rows = min(block_rows, -(-n // FEWEST_BLOCKS))
    chunks = max(FEWEST_CHUNKS, int(block_rows * size / n / CHUNK_BYTES))
    per_block = min(chunks, block_rows)
    edges = _find_edges(X, n, -(-n * per_block // block_rows))
    return MemoryPlan(memory, edges, per_block, mapped, folder, burden.kept)


def _find_edges(X: Rows, n: int, count: int) -> np.ndarray:
    """Return the first row of each of `count` chunks of about the same number of bytes, and n."""
    if not X.sparse:
        return np.unique(np.linspace(0, n, count + 1).round().astype(np.int64))
    # Sparse rows differ in length: a chunk's bytes are those of its values and of its rows.
    entry_bytes = X.data.itemsize + X.indices.itemsize
    row_bytes = X.indptr.itemsize + WORK_BYTES

    def bytes_before(row: int) -> int:
        """Return the bytes of the rows before one: they ascend with its number."""
        return int(X.indptr[row]) * entry_bytes + row * row_bytes

    sizes = np.linspace(0, bytes_before(n), count + 1)
    edges = [bisect_left(range(n), size, key=bytes_before) for size in sizes]
    edges[-1] = n
    return np.unique(edges)
