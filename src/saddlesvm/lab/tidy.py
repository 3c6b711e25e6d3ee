"""The one trace format of the lab: a table, a row a certificate, in memory and as Parquet or CSV; and a callback.

Charts of a trace show the median over the repeats, with the quartiles as a band.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from saddlesvm.data import DataError, atomic_write
from saddlesvm.fit.outcome import Record
from saddlesvm.lab.charts import DASHES, Chart, Series
from saddlesvm.lab.dataset import make_dataset
from saddlesvm.lab.runs import label_of
from saddlesvm.problem.losses import Loss, make_loss
from saddlesvm.runtime.allowed import one_of

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


def tidy_trace(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """A trace table from rows; columns that a row lacks are filled with empty text, 0 or NaN.

    Returns
    -------
    DataFrame
        The columns of :data:`COLUMNS` in their order and types, suboptimality filled in; `form` says whether objectives
        are those of the C or of the lambda form.
    """
    blank: dict[str, Any] = {name: {TEXT: "", WHOLE: 0, NUMBER: np.nan}[kind] for name, kind in COLUMNS.items()}
    frame = pd.DataFrame([blank | row for row in rows], columns=list(COLUMNS))
    return with_suboptimality(frame.astype(COLUMNS))


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
    every : float, optional
        Epochs between certificates; by default as the fit makes them.

    Attributes
    ----------
    rows : list of dict
        A row a certificate, with the keys

        ==========================  =======================================================
        epoch, relative_gap         of the certificate
        half_norm                   ``||w||^2 / 2``, the intercept left out
        loss_CLASS                  mean loss of the rows of that class
        error_CLASS                 share of them on the wrong side
        margin_QUANTILE             quantile of the margins of all rows: ``margin_0.05``
        ==========================  =======================================================

    Examples
    --------
    >>> from saddlesvm import LinearSVC
    >>> from saddlesvm.data import load_bundled
    >>> from saddlesvm.lab import Diagnostics
    >>> notes = load_bundled("banknote")
    >>> seen = Diagnostics(notes.X, notes.y, every=1)
    >>> model = LinearSVC(loss="hinge", callbacks=[seen], random_state=0)
    >>> model = model.fit(notes.X, notes.y)
    >>> len(seen.rows) == len(model.trace_), sorted(seen.rows[-1])[:3]
    (True, ['epoch', 'error_0', 'error_1'])
    """

    def __init__(self, X: Any, y: Any, loss: str | Loss = "hinge", every: float | None = None) -> None:
        self.data = make_dataset(X, y)
        self.loss = make_loss(loss, task="classification")
        self.every = every
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
        for share, value in zip(QUANTILES, np.quantile(margins, QUANTILES), strict=True):
            row[f"margin_{share:g}"] = float(value)
        self.rows.append(row)

    def to_frame(self) -> pd.DataFrame:
        """The table as a pandas DataFrame."""
        return pd.DataFrame(self.rows)


AXES = {
    "epochs": ("epoch", "epochs"),
    "rows": ("rows_touched", "rows touched"),
    "seconds": ("seconds_solving", "seconds of solving"),
    "evaluations": ("kernel_evaluations", "kernel values computed"),
}
QUANTITIES = {
    "suboptimality": ("relative_suboptimality", "relative suboptimality, (P - best D) / best P", True),
    "gap": ("relative_gap", "relative gap, (P - D) / max(|P|, |D|)", True),
    "train_error": ("train_error", "training error", False),
    "test_error": ("test_error", "test error", False),
    "accuracy": ("accuracy", "training accuracy", False),
    "active": ("active_share", "share of active rows", False),
    "change": ("change_of_w", "norm of the change of w in a pass", True),
    "seconds": ("seconds_solving", "seconds of solving", True),
}
ENDS = ("test_error", "train_error", "seconds")  # quantities of which the ends of runs are drawn against C
MOST_POINTS = 240
QUARTILES = (0.25, 0.75)
FLOOR = 1e-15  # smallest value on a log axis; smaller ones are drawn at this height


def curve_chart(
    trace: pd.DataFrame, quantity: str, against: str = "epochs", title: str = "", centre: str = "median"
) -> Chart:
    """A quantity of the trace along the runs, one line a solver.

    Parameters
    ----------
    trace : DataFrame
        A tidy trace; lines of different problems (loss, C) differ by their dashes.
    quantity : {"suboptimality", "gap", "train_error", "test_error", "accuracy", "active", "change"}
        The share of rows that shrinking still works on is "active"; the norm of the change of w in a pass is "change".
    against : {"epochs", "rows", "seconds"}
    title : str, optional
    centre : {"median", "mean"}
        Of the repeats.

    Raises
    ------
    ValueError
        An unknown quantity or axis.
    """
    if quantity not in QUANTITIES or against not in AXES:
        raise ValueError(f"charts show {', '.join(QUANTITIES)} over {', '.join(AXES)}; got {quantity!r}, {against!r}")
    column, y_title, logarithmic = QUANTITIES[quantity]
    x_column, x_title = AXES[against]
    frame = derived(trace)
    series = [
        summarised(label, [(run[x_column], run[column]) for run in runs], style, dash, logarithmic, centre)
        for label, style, dash, runs in grouped(frame)
    ]
    shown = tuple(one for one in series if one.x.size)
    words = f"{centre.capitalize()} over the repeats; the band holds the middle half of them."
    return Chart(title or y_title, x_title, y_title, shown, x_log=True, y_log=logarithmic, caption=words)


def derived(trace: pd.DataFrame) -> pd.DataFrame:
    """The trace with the columns that only charts use."""
    frame = trace.copy()
    frame["accuracy"] = 1.0 - frame["train_error"]
    rows = np.maximum(frame["rows_touched"] / frame["epoch"].where(frame["epoch"] > 0.0), 1.0)
    frame["active_share"] = frame["active_rows"] / rows.round()
    return frame


def grouped(frame: pd.DataFrame) -> Iterator[tuple[str, int, str, list[pd.DataFrame]]]:
    """Label, colour, dash and runs of each line: a colour a solver, a dash a problem."""
    strength, written = strengths(frame)
    problems = list(dict.fromkeys(frame[PROBLEM].itertuples(index=False, name=None)))
    for style, (label, solver) in enumerate(labelled(frame).groupby("label", sort=False)):
        for place, (loss, C) in enumerate(problems):
            chosen = solver[(solver["loss"] == loss) & (solver["C"] == C)]
            if len(chosen):
                ending = "" if len(problems) == 1 else f", {loss}, {strength} = {written[C]}"
                dash, runs = DASHES[place % len(DASHES)], [run for _, run in chosen.groupby("repeat")]
                yield str(label) + ending, style, dash, runs


def summarised(
    name: str,
    runs: list[tuple[Any, Any]],
    style: int,
    dash: str = "solid",
    logarithmic: bool = False,
    centre: str = "median",
) -> Series:
    """The median (or mean) of several runs, and their quartiles.

    A run counts with its latest value at each point; one that has ended goes on with its last. The line begins where
    all of the runs have a value: one over those that happen to have begun would rise when a late one joins.

    Parameters
    ----------
    name : str
    runs : list of (x, y)
    style : int
    dash : str
    logarithmic : bool
        Values below :data:`FLOOR` are drawn there.
    centre : {"median", "mean"}
    """
    clean = [_finite(np.asarray(x, dtype=float), np.asarray(y, dtype=float)) for x, y in runs]
    clean = [(x, np.maximum(y, FLOOR) if logarithmic else y) for x, y in clean if x.size]
    if not clean:
        return Series(name, np.empty(0), np.empty(0), style=style, dash=dash)
    if len(clean) == 1:
        return Series(name, *clean[0], style=style, dash=dash)
    grid = thinned(np.unique(np.concatenate([x for x, _ in clean])))
    grid = grid[grid >= max(x[0] for x, _ in clean)]
    values = np.stack([_held(x, y, grid) for x, y in clean])
    middle = np.median(values, axis=0) if centre == "median" else values.mean(axis=0)
    low, high = np.quantile(values, QUARTILES, axis=0)
    return Series(name, grid, middle, low, high, style=style, dash=dash)


def _held(x: np.ndarray, y: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """The latest value at each point of the grid; NaN before the first."""
    place = np.searchsorted(x, grid, side="right") - 1
    return np.where(place >= 0, y[np.maximum(place, 0)], np.nan)


def _finite(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    keep = np.isfinite(x) & np.isfinite(y) & (x > 0.0)
    return x[keep], y[keep]


def thinned(x: np.ndarray, most: int = MOST_POINTS) -> np.ndarray:
    """At most `most` of the points, evenly by number, the ends among them."""
    if x.size <= most:
        return x
    return x[np.unique(np.linspace(0, x.size - 1, most).round().astype(int))]


def closing_chart(trace: pd.DataFrame, against: str = "epochs", title: str = "") -> Chart:
    """Primal and dual objective of each solver closing in on each other."""
    x_column, x_title = AXES[against]
    series = []
    for label, style, _, runs in grouped(trace):
        for column, dash, follows in (("primal", "solid", ""), ("dual", "dash", label)):
            name = f"{label}: dual" if follows else label
            line = summarised(name, [(run[x_column], run[column]) for run in runs], style, dash)
            series.append(replace(line, follows=follows))
    shown = tuple(one for one in series if one.x.size)
    words = "Primal values come down (solid), dual bounds come up (dashed); the optimum lies between."
    objective = f"objective ({strengths(trace)[0]} form)"
    return Chart(title or "primal and dual", x_title, objective, shown, x_log=True, caption=words)


def strength_chart(trace: pd.DataFrame, quantity: str) -> Chart:
    """The end of every run against C (or lambda): "test_error", "train_error", or "seconds" of solving.

    Median over the repeats, with their quartiles.
    """
    one_of("quantity", quantity, ENDS)
    column, y_title, logarithmic = QUANTITIES[quantity]
    name, _ = strengths(trace)
    lines = labelled(trace).groupby(["label", "loss"], sort=False)
    series = []
    for style, ((label, loss), line) in enumerate(lines):
        ends = line.groupby(["C", "repeat"], sort=False).last().reset_index()
        values = ends.groupby("lam" if name == "lambda" else "C")[column].quantile([QUARTILES[0], 0.5, QUARTILES[1]])
        known = values.unstack().dropna()
        low, middle, high = known.to_numpy().T
        series.append(Series(f"{label}, {loss}", known.index.to_numpy(dtype=float), middle, low, high, style=style))
    shown = tuple(one for one in series if one.x.size)
    words = "Where each run ended; median and quartiles over the repeats."
    return Chart(f"{y_title} against {name}", name, y_title, shown, x_log=True, y_log=logarithmic, caption=words)
