"""A callback that measures losses, errors and margins at each certificate of a fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from saddlesvm.fit.outcome import Record
from saddlesvm.lab.dataset import make_dataset
from saddlesvm.problem.losses import Loss, make_loss

if TYPE_CHECKING:
    from saddlesvm.runtime.data_types import LabelsLike, RowsLike

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


class Diagnostics:
    """A callback that measures losses, errors and margins at each certificate of a fit.

    Give it to the `callbacks` of an estimator. Its table has a row for each row of the trace.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
        Rows to evaluate: the training rows, or others.
    y : array of shape (n,)
        Two classes.
    loss : str or Loss, default="hinge"
    every : float, optional
        Epochs between certificates; by default, the fit decides.

    Attributes
    ----------
    rows : list of dict
        A row for each certificate, with the keys

        ==========================  =======================================================
        epoch, relative_gap         of the certificate
        half_norm                   ``||w||^2 / 2``, the intercept left out
        loss_CLASS                  mean loss of the rows of that class
        error_CLASS                 share of these rows on the wrong side
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

    def __init__(
        self, X: RowsLike, y: LabelsLike, loss: str | Loss = "hinge", every: float | None = None
    ) -> None:
        self.data = make_dataset(X, y)
        self.loss = make_loss(loss, task="classification")
        self.every = every
        self.rows: list[dict[str, float]] = []

    def __call__(self, record: Record) -> None:
        """Add the row of a certificate."""
        y = self.data.y
        products = np.asarray(self.data.X @ record.coef, dtype=np.float64).ravel()
        margins = y * (products + float(record.intercept))
        losses = np.array([self.loss.value(float(margin), 1.0) for margin in margins])
        row = {"epoch": record.epoch, "relative_gap": record.relative_gap}
        row["half_norm"] = 0.5 * float(record.coef @ record.coef)
        for name, sign in zip(self.data.classes, (-1.0, 1.0), strict=True):
            is_class = y == sign
            row[f"loss_{name}"] = float(losses[is_class].mean())
            row[f"error_{name}"] = float((margins[is_class] <= 0.0).mean())
        for share, value in zip(QUANTILES, np.quantile(margins, QUANTILES), strict=True):
            row[f"margin_{share:g}"] = float(value)
        self.rows.append(row)

    def to_frame(self) -> pd.DataFrame:
        """Return the table as a pandas DataFrame."""
        return pd.DataFrame(self.rows)
