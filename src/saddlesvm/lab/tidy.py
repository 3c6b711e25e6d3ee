"""The one trace format of the lab: a table, a row a certificate, in memory and as Parquet or CSV; and a callback."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from saddlesvm.data import DataError, atomic_write
from saddlesvm.fit.trace import Record
from saddlesvm.lab.contenders import label_of
from saddlesvm.lab.dataset import make_dataset
from saddlesvm.problem.losses import Loss, make_loss

TEXT, WHOLE, NUMBER = "str", "int64", "float64"
COLUMNS: dict[str, str] = {
    "data": TEXT,
    "solver": TEXT,
    "options": TEXT,
    "loss": TEXT,
    "C": NUMBER,
    "lam": NUMBER,
    "form": TEXT,
    "repeat": WHOLE,
    "epoch": NUMBER,
    "rows_touched": WHOLE,
    "seconds_solving": NUMBER,
    "seconds_certifying": NUMBER,
    "primal": NUMBER,
    "dual": NUMBER,
    "gap": NUMBER,
    "relative_gap": NUMBER,
    "suboptimality": NUMBER,
    "relative_suboptimality": NUMBER,
    "train_error": NUMBER,
    "test_error": NUMBER,
    "active_rows": WHOLE,
    "kernel_evaluations": WHOLE,
    "change_of_w": NUMBER,
    "outcome": TEXT,
    "remark": TEXT,
}
CELL = ["solver", "options", "loss", "C", "repeat"]
PROBLEM = ["loss", "C"]
ENDINGS = (".parquet", ".csv")


def tidy(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """A trace table from rows; columns that a row lacks are filled with empty text, 0 or NaN.

    Returns
    -------
    DataFrame
        The columns of :data:`COLUMNS` in their order and types, suboptimality filled in; `form` says whether objectives
        are those of the C or of the lambda form.
    """
    frame = pd.DataFrame(rows)
    for name, kind in COLUMNS.items():
        blank: Any = {TEXT: "", WHOLE: 0, NUMBER: np.nan}[kind]
        column = frame[name] if name in frame else pd.Series([blank] * len(frame), dtype=object)
        if kind != NUMBER:  # not fillna: pandas 2.2 warns of what it will do differently
            column = pd.Series([blank if lacking else one for one, lacking in zip(column, column.isna(), strict=True)])
        frame[name] = column.astype(kind)
    return with_suboptimality(frame[list(COLUMNS)])


def with_suboptimality(frame: pd.DataFrame) -> pd.DataFrame:
    """The table with the distance of each primal value from the best dual bound that any run of its problem proved.

    ``suboptimality`` is ``primal - bound``, ``relative_suboptimality`` divides it by the lowest primal value known.
    """
    frame = frame.copy()
    problems = frame.groupby(PROBLEM)
    bound, lowest = problems["dual"].transform("max"), problems["primal"].transform("min")
    frame["suboptimality"] = (frame["primal"] - bound).clip(lower=0.0)
    frame["relative_suboptimality"] = frame["suboptimality"] / lowest.where(lowest > 0.0)
    return frame


def labelled(frame: pd.DataFrame) -> pd.DataFrame:
    """The table with the column `label`: solver and options as legends and tables write them."""
    return frame.assign(label=[label_of(*names) for names in zip(frame["solver"], frame["options"], strict=True)])


def strengths(frame: pd.DataFrame) -> tuple[str, dict[float, str]]:
    """The trace's name for the strength of its problems, "C" or "lambda", and the text for each C."""
    if len(frame) and (frame["form"] == "lambda").all():
        return "lambda", {float(C): f"{lam:g}" for C, lam in zip(frame["C"], frame["lam"], strict=True)}
    return "C", {float(C): f"{C:g}" for C in frame["C"].unique()}


def done_cells(frame: pd.DataFrame) -> set[tuple[Any, ...]]:
    """The cells (solver, options, loss, C, repeat) of a table that were run to their end."""
    ended = frame[(frame["outcome"] != "") & (frame["outcome"] != "interrupted")]
    return set(ended[CELL].itertuples(index=False, name=None))


def without_unfinished(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of the cells that were run to their end."""
    done = done_cells(frame)
    keep = [key in done for key in frame[CELL].itertuples(index=False, name=None)]
    return frame[np.array(keep, dtype=bool)].reset_index(drop=True)


def write_trace(frame: pd.DataFrame, path: str | os.PathLike[str]) -> None:
    """Write a trace table; the ending of `path` decides between Parquet and CSV.

    Raises
    ------
    DataError
        The ending is unknown, or the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from saddlesvm.lab import compare, read_trace, write_trace
    >>> from saddlesvm.data import load_bundled
    >>> notes = load_bundled("banknote")
    >>> trace = compare(
    ...     notes.X, notes.y, solvers="dcd", C=0.01, tol=1e-3, name="banknote"
    ... ).trace
    >>> path = tempfile.mkdtemp() + "/banknote.csv"
    >>> write_trace(trace, path)
    >>> len(read_trace(path)) == len(trace)
    True
    """
    ending = check_ending(path)
    with atomic_write(path) as file:
        if ending == ".parquet":
            frame.to_parquet(file, index=False)
        else:
            frame.to_csv(file, index=False, float_format="%.17g")


def read_trace(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read a trace table that :func:`write_trace` wrote.

    Raises
    ------
    DataError
        There is no such file, or it is not a trace table; the message names a missing column.

    Examples
    --------
    >>> import tempfile
    >>> from saddlesvm.lab import compare, read_trace, write_trace
    >>> from saddlesvm.data import load_bundled
    >>> notes = load_bundled("banknote")
    >>> trace = compare(
    ...     notes.X, notes.y, solvers="dcd", C=0.01, tol=1e-3, name="banknote"
    ... ).trace
    >>> path = tempfile.mkdtemp() + "/banknote.csv"
    >>> write_trace(trace, path)
    >>> len(read_trace(path)) == len(trace)
    True
    """
    ending = check_ending(path)
    try:
        if ending == ".parquet":
            frame = pd.read_parquet(path)
        else:
            # As text, which astype reads to the last bit; a blank number is NaN.
            frame = pd.read_csv(path, keep_default_na=False, dtype=str)
            for name in frame.columns.intersection([name for name, kind in COLUMNS.items() if kind == NUMBER]):
                frame[name] = frame[name].where(frame[name] != "", "nan")
    except OSError as error:
        raise DataError(f"{os.fspath(path)}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise DataError(f"{os.fspath(path)}: is not a readable trace: {error}") from None
    missing = [name for name in COLUMNS if name not in frame]
    if missing:
        raise DataError(f"{os.fspath(path)}: is not a trace of this lab: it has no column {missing[0]!r}")
    try:
        return frame[list(COLUMNS)].astype(COLUMNS)
    except (ValueError, TypeError) as error:
        raise DataError(f"{os.fspath(path)}: is not a trace of this lab: {error}") from None


def check_ending(path: str | os.PathLike[str]) -> str:
    """The ending of a trace file, if it is one that is known."""
    ending = Path(path).suffix.lower()
    if ending not in ENDINGS:
        raise DataError(f"{os.fspath(path)}: a trace is written as {' or '.join(ENDINGS)}")
    return ending


QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


class Diagnostics:
    """A callback for the `callbacks` of an estimator; its table has one row for each row of the fit's trace.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
        Rows to evaluate: the training rows, or others.
    y : array of shape (n,)
        Two classes.
    loss : str or Loss, default="hinge"
    quantiles : sequence of float
        Of the margins ``y (x . w + b)``.

    Attributes
    ----------
    rows : list of dict
        A row a certificate, with the keys

        ==========================  =======================================================
        epoch, relative_gap         of the certificate
        half_norm                   ``||w||^2 / 2``, the intercept left out
        loss_CLASS                  mean loss of the rows of that class
        error_CLASS                 share of them on the wrong side
        margin_QUANTILE             quantile of the margins of all rows, as ``margin_0.05``
        ==========================  =======================================================

    Examples
    --------
    >>> from saddlesvm import LinearSVC
    >>> from saddlesvm.data import load_bundled
    >>> from saddlesvm.lab import Diagnostics
    >>> notes = load_bundled("banknote")
    >>> seen = Diagnostics(notes.X, notes.y)
    >>> model = LinearSVC(
    ...     loss="hinge", certify_every=1, callbacks=[seen], random_state=0
    ... ).fit(notes.X, notes.y)
    >>> len(seen.rows) == len(model.trace_), sorted(seen.rows[-1])[:3]
    (True, ['epoch', 'error_0', 'error_1'])
    """

    def __init__(self, X: Any, y: Any, loss: str | Loss = "hinge", quantiles: tuple[float, ...] = QUANTILES) -> None:
        self.data = make_dataset(X, y)
        self.loss = make_loss(loss, task="classification")
        self.quantiles = quantiles
        self.rows: list[dict[str, float]] = []

    def __call__(self, record: Record) -> None:
        """Add the row of a certificate."""
        y = self.data.y
        margins = y * (np.asarray(self.data.X @ record.coef, dtype=np.float64).ravel() + float(record.intercept))
        losses = np.array([self.loss.value(float(margin), 1.0) for margin in margins])
        row = {"epoch": record.epoch, "relative_gap": record.relative_gap}
        row["half_norm"] = 0.5 * float(record.coef @ record.coef)
        for name, sign in zip(self.data.classes, (-1.0, 1.0), strict=True):
            own = y == sign
            row[f"loss_{name}"] = float(losses[own].mean())
            row[f"error_{name}"] = float((margins[own] <= 0.0).mean())
        for share, value in zip(self.quantiles, np.quantile(margins, self.quantiles), strict=True):
            row[f"margin_{share:g}"] = float(value)
        self.rows.append(row)

    def to_frame(self) -> Any:
        """The table as a pandas DataFrame (needs pandas)."""
        import pandas

        return pandas.DataFrame(self.rows)
