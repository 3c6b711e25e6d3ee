"""The checkpoint of a certified path: its fits so far in one file of plain arrays.

A path that goes on from it begins each fit that the file holds at the stored weights and dual variables, and certifies
it anew: nothing in the file is believed. So the wanted gap, the ends and the limits may differ from those of the path
that wrote it.
"""

from __future__ import annotations

import copy
import threading
import zlib
from typing import Any

import numpy as np
from scipy import sparse

from saddlesvm.data import inputs
from saddlesvm.data.archives import Archive
from saddlesvm.estimators.linear_model import LinearModel
from saddlesvm.fit.checkpoint import Checkpoint
from saddlesvm.multiclass.starts import FormerFit
from saddlesvm.problem.fingerprint import sketch
from saddlesvm.rows.layouts import Rows, n_features, n_rows

FORMAT = "saddlesvm path checkpoint 1"
CSR_PARTS = ("data", "indices", "indptr")
OPTIONS = ("loss", "fit_intercept", "intercept", "intercept_scaling", "multi_class", "class_weight", "epsilon", "width")


def marks(template: LinearModel, X: Rows, y: Any, weights: Any) -> dict[str, Any]:
    """The marks that must be equal for a path to resume: the data, and the options that define the objective."""
    labels = np.asarray(y)
    known, codes = np.unique(labels, return_inverse=True)
    given = np.empty(0) if weights is None else np.ascontiguousarray(weights, dtype=np.float64)
    return {
        "shape": [n_rows(X), n_features(X)],
        "rows": zlib.crc32(sketch(X, np.arange(n_rows(X), dtype=np.int32 if n_rows(X) < 2**31 else np.int64)).data),
        "labels": [zlib.crc32(repr(known.tolist()).encode()), zlib.crc32(codes.astype(np.int64).data)],
        "weights": zlib.crc32(given.data),
        "options": {name: repr(getattr(template, name)) for name in OPTIONS if hasattr(template, name)},
    }


class PathCheckpoint:
    """Reads and writes the fits of a path.

    Parameters
    ----------
    given : path-like or Checkpoint
        The file, and how often it is written: after a fit when the time has come, and at the end of the path.
    mark : dict
        Of :func:`marks`.

    Raises
    ------
    ValueError
        The file is damaged, or belongs to another path.
    """

    def __init__(self, given: Any, mark: dict[str, Any]) -> None:
        self.file = copy.copy(given) if isinstance(given, Checkpoint) else Checkpoint(given)
        self.mark, self.lock = mark, threading.Lock()
        self.fits: dict[float, FormerFit] = self._read() if self.file.path.exists() else {}

    def at(self, C: float) -> FormerFit | None:
        """The stored fit at C; None without one."""
        return self.fits.get(C)

    def keep(self, C: float, fit: FormerFit) -> None:
        """Take a fit in, and write the file if it is time."""
        with self.lock:
            self.fits[C] = fit
            if self.file.due():
                self._write()

    def end(self) -> None:
        """Write the file."""
        with self.lock:
            self._write()

    def _write(self) -> None:
        arrays: dict[str, np.ndarray] = {}
        for k, fit in enumerate(self.fits.values()):
            arrays[f"{k}.coef"], arrays[f"{k}.intercept"], duals = fit.coef, fit.intercept, fit.duals
            parts = {f"{k}.{part}": getattr(duals, part) for part in CSR_PARTS} if sparse.issparse(duals) else {}
            arrays |= parts or {f"{k}.duals": duals}
        phases = [fit.phases for fit in self.fits.values()]
        header = {"format": FORMAT, "mark": self.mark, "C": list(self.fits), "phases": phases}
        with self.file.warned():
            self.file.store(header, arrays)

    def _read(self) -> dict[float, FormerFit]:
        with self.file.opened(FORMAT, self.mark, "path") as (stored, header):
            return self._fits(stored, header)

    def _fits(self, stored: Archive, header: dict[str, Any]) -> dict[float, FormerFit]:
        """The fits in the file, after their shapes and values are checked."""
        n, d = self.mark["shape"]
        found: dict[float, FormerFit] = {}
        for k, (C, phases) in enumerate(zip(header["C"], header["phases"], strict=True)):
            coef, intercept = stored.read(f"{k}.coef"), stored.read(f"{k}.intercept")
            duals: Any
            if f"{k}.duals" in stored.names:
                duals, values = (given := stored.read(f"{k}.duals")), given
            else:
                data, indices, indptr = (stored.read(f"{k}.{part}") for part in CSR_PARTS)
                duals, values = inputs.canonical(sparse.csr_array((data, indices, indptr), shape=(len(coef), n))), data
            shapes = (coef.shape, intercept.shape, duals.shape)
            if shapes != ((len(coef), d), (len(coef),), (len(coef), n)) or len(phases) != len(coef):
                raise ValueError(f"a fit of shape {coef.shape} does not belong to {n:,} x {d:,} rows")
            if not all(np.isfinite(one).all() for one in (coef, intercept, values)):
                raise ValueError("it holds numbers that are not finite")
            found[float(C)] = FormerFit(duals, coef, intercept, float(C), False, [dict(one) for one in phases])
        return found
