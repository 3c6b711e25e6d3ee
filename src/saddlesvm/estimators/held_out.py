"""Scores of rows by models that were not trained on them, in folds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from saddlesvm.data.door import check_design
from saddlesvm.data.label_checks import (
    check_indicator,
    check_labels,
    check_targets,
    check_weights,
)
from saddlesvm.estimators.base import Labels, apply_limits
from saddlesvm.estimators.fitted import Fitted, former_fit, score_rows
from saddlesvm.estimators.solve import fit_rows
from saddlesvm.problem.problem import resolve_C
from saddlesvm.runtime.clock import limit_to_share
from saddlesvm.runtime.interrupts import raise_interrupts

if TYPE_CHECKING:
    from saddlesvm.runtime.data_types import LabelsLike, RowsLike

FOLDS = 5  # of the rows, if nothing else is asked for
# Options that a model of a fold goes without.
ALONE = {"checkpoint": None, "warm_start": False, "verbose": 0}


def draw_folds(codes: np.ndarray, weights: np.ndarray | None, seed: int) -> np.ndarray:
    """The fold of each row, drawn at random, each class dealt out alike.

    -1 for the only row of a class, without which a model would not know the class, and for rows of
    weight zero.
    """
    random = np.random.default_rng(seed)
    folds = np.full(codes.size, -1)
    begun = 0
    counted = np.ones(codes.size, dtype=bool) if weights is None else weights > 0.0
    for k in range(int(codes.max()) + 1):
        own = random.permutation(np.flatnonzero((codes == k) & counted))
        if own.size > 1:
            # Begin where the last class ended, so that all folds get about the same number of rows.
            folds[own] = (begun + np.arange(own.size)) % FOLDS
            begun += own.size
    return folds


class HeldOut:
    """Models of the same options, each trained on the rows of all folds but one.

    Parameters
    ----------
    fitted : Fitted
        A fit to all rows.
    X, y, sample_weight
        Its data.

    Attributes
    ----------
    fits : list of Fitted
        The models of the last call of :meth:`scores`, at which the next call begins.
    """

    def __init__(
        self,
        fitted: Fitted,
        X: RowsLike,
        y: LabelsLike,
        sample_weight: ArrayLike | None,
    ) -> None:
        self.X = check_design(X).X
        n = self.X.shape[0]
        self.weights = check_weights(sample_weight, n)
        # Without classes (targets, or several labels) any row may be in any fold.
        codes = np.zeros(n, dtype=np.intp)
        if fitted.labels is None:
            self.y = check_targets(y, n)
        elif fitted.several_labels:
            self.y = check_indicator(y, n).toarray()
        else:
            self.y = check_labels(y, n)
            codes = np.searchsorted(fitted.labels.classes, self.y)
        self.folds = draw_folds(codes, self.weights, 0)
        self.fits: list[Fitted] = []

    def scores(self, fitted: Fitted, **options: object) -> np.ndarray:
        """Return the scores of the rows by models with the options of a fit, shape (n, k)."""
        n = len(self.folds)
        template = fitted.template
        offered = template.get_params(deep=False)
        alone = {name: value for name, value in ALONE.items() if name in offered}
        # The folds have the C of all rows, also if lambda was given.
        C = template.C if template.lam is None else resolve_C(None, template.lam, n)[0]
        own = clone(template).set_params(C=C, lam=None, **alone, **options)
        fits: list[Fitted] = []
        left = len(np.unique(self.folds[self.folds >= 0]))

        # Rows in no fold (-1) are scored by the model of all rows.
        scores = score_rows(fitted, self.X).reshape(n, -1)
        for fold in np.unique(self.folds[self.folds >= 0]):
            train = np.flatnonzero(self.folds != fold)
            test = np.flatnonzero(self.folds == fold)
            weights = None if self.weights is None else self.weights[train]
            # A fold begins where it ended the last time.
            start = former_fit(self.fits[len(fits)]) if self.fits else None
            # Each fold gets an equal share of the time that is left.
            share = 1.0 / (left - len(fits))
            with raise_interrupts(), limit_to_share(share), apply_limits(own):
                other = fit_rows(clone(own), self.X[train], self.y[train], weights, start=start)
            fits.append(other)
            found = add_missing_classes(
                score_rows(other, self.X[test]), other.labels, fitted.labels
            )
            scores[test] = found.reshape(test.size, -1)
        self.fits = fits
        return scores


def add_missing_classes(
    scores: np.ndarray, known: Labels | None, wanted: Labels | None
) -> np.ndarray:
    """Return scores with a column for each wanted class; a class that is not known has none."""
    if known is None or wanted is None or known.classes.size == wanted.classes.size:
        return scores
    if scores.shape[1] == 1:
        scores = np.hstack([-scores, scores])
    every = np.full((len(scores), wanted.classes.size), -np.inf)
    every[:, np.searchsorted(wanted.classes, known.classes)] = scores
    return every
