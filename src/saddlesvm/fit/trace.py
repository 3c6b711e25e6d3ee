"""The records of a fit: one per certificate, passed to the callbacks; the recorder is one of these."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any, Protocol

import numpy as np

from saddlesvm.problem.certificate import Certificate


def read_only(value: Any) -> Any:
    """The value itself, or a read-only view of an array: callbacks cannot change the fit."""
    if isinstance(value, np.ndarray):
        value = value.view()
        value.flags.writeable = False
    return value


@dataclass(frozen=True)
class Record:
    """The state of a run when a certificate was computed.

    Attributes
    ----------
    epoch : float
        Passes over the data so far.
    rows_touched : int
    seconds_solving, seconds_certifying : float
        Time spent so far, measured separately.
    primal, dual, gap, relative_gap : float
    active : int
        Number of rows that the solver still works on.
    change : float
        Norm of the change of w in the last pass; NaN where the solver does not measure it.
    remark : str
        The solver's decision, as text.
    coef : ndarray of shape (d,)
        Weights of the model that the fit would return now, read-only. The recorder does not keep them. With
        ``keep="last"``, the weights of the solver's iterate.
    intercept : float
    problem : str
        Name of the sub-problem, if there are several.
    form : {"C", "lambda"}
        The form of `primal` and `dual`.
    kernel_evaluations : int
        Kernel values that the solver computed so far; 0 for linear machines.
    primal_rounding, dual_rounding : float
        Bounds on the rounding in both objectives, see :class:`~saddlesvm.Certificate`. Not a column of a trace.

    Examples
    --------
    >>> from saddlesvm import LinearSVC
    >>> from saddlesvm.data import load_bundled
    >>> notes = load_bundled("banknote")
    >>> seen = []
    >>> model = LinearSVC(callbacks=[lambda record: seen.append(record.relative_gap)]).fit(
    ...     notes.X, notes.y
    ... )
    >>> seen[-1] == model.certificate_.relative_gap
    True
    """

    epoch: float
    rows_touched: int
    seconds_solving: float
    seconds_certifying: float
    primal: float
    dual: float
    gap: float
    relative_gap: float
    active: int
    change: float
    remark: str
    coef: np.ndarray = field(repr=False)
    intercept: float = 0.0
    problem: str = ""
    form: str = "C"
    kernel_evaluations: int = 0
    primal_rounding: float = 0.0
    dual_rounding: float = 0.0

    @classmethod
    def of(cls, certificate: Certificate, **more: Any) -> Record:
        """The record of a certificate; `more` are its other fields."""
        return cls(**dict(zip(FIGURES, FIGURES_OF(certificate), strict=True)), **more)

    @property
    def certificate(self) -> Certificate:
        """The certificate behind the record (in the form the problem reports)."""
        return Certificate(self.primal, self.dual, self.form, self.primal_rounding, self.dual_rounding)


FIGURES = ("primal", "dual", "gap", "relative_gap", "form", "primal_rounding", "dual_rounding")
FIGURES_OF = attrgetter(*FIGURES)
LEFT_OUT = ("coef", "intercept", "form", "primal_rounding", "dual_rounding")
COLUMNS = tuple(column.name for column in fields(Record) if column.name not in LEFT_OUT)
VALUES = attrgetter(*COLUMNS)


class Callback(Protocol):
    """Called with a record of each certificate. Returning True stops the fit, like an interrupt."""

    def __call__(self, record: Record, /) -> bool | None: ...


class Trace(list[dict[str, Any]]):
    """The recorder of a fit: a list with one dict per certificate, with the keys of :data:`COLUMNS`.

    Examples
    --------
    >>> from saddlesvm import LinearSVC
    >>> from saddlesvm.data import load_bundled
    >>> notes = load_bundled("banknote")
    >>> trace = LinearSVC(random_state=0).fit(notes.X, notes.y).trace_
    >>> bool(trace.column("relative_gap")[-1] <= 1e-4), list(trace.to_frame())[:2]
    (True, ['epoch', 'rows_touched'])
    """

    def __call__(self, record: Record, /) -> None:
        self.append(dict(zip(COLUMNS, VALUES(record), strict=True)))

    def column(self, name: str) -> np.ndarray:
        """One column as an array."""
        return np.array([row[name] for row in self])

    def to_frame(self) -> Any:
        """The trace as a pandas DataFrame (needs pandas)."""
        import pandas

        return pandas.DataFrame(list(self), columns=list(COLUMNS))
