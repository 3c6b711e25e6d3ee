"""Newton's model of the objective on a working set, minimised: on a matrix, or on columns.

With few coordinates the descent runs on the matrix H, so that a pass does not read the data, and
alternates with Newton steps on the support: for fixed signs the model is a parabola, whose
minimiser a Cholesky factor finds. With many it runs on the columns alone.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve

from saddlesvm.rows.layouts import CSR
from saddlesvm.runtime.clock import time_is_up
from saddlesvm.runtime.threads import blas_for
from saddlesvm.solvers.columns.kernels import (
    PASSES,
    Coordinates,
    Moving,
    bent_squares,
    descend,
    violations,
)
from saddlesvm.solvers.columns.store import ColumnStore, Gram
from saddlesvm.solvers.equations import conjugate_gradients
from saddlesvm.solvers.linear_algebra import cholesky

# Passes over a matrix between two Newton steps on the support: measured on rcv1-binary, l1,
# logistic and squared hinge at C = 100, where 20 to 40 take as long and 10 or 80 take longer.
MATRIX_PASSES = 40
# Passes of a rough model at most: measured on rcv1-binary, l1, logistic and squared hinge at C = 1,
# 10 and 100, where 40 to 160 take as long and 10 takes twice as long.
ROUGH_PASSES = 80
# Second derivative of a row, relative to the mean, below which a rough model leaves the row out:
# those rows have at most a tenth of the sum. Measured there: .03 to .3 take as long.
SLIGHT = 0.1
# The same for a move of the pull, and the share of the diagonal that is added to its equations:
# features that depend on each other move no multiplier far. Measured there: HARDLY = .1 moves the
# pull too little, .001 takes twice as long; DAMPED = 1e-3 is as good, 1e-6 fails.
HARDLY = 0.01
DAMPED = 1e-4
ROUNDS = 12  # rounds of passes and a Newton step on the support, at most; guessed
MOST_ROWS = 0.7  # share of the rows up to which columns without the others are copied; a guess
# Share of the diagonal that is added to it, at least: columns may depend on each other; guessed.
TINY = 1e-12
GROWTH = 10.0  # factor of that share after a short step; guessed
MOST_COORDINATES = 4000  # side of a matrix: 128 MB; guessed
MODEL_FORCING = 0.05  # relative residual at which conjugate gradients stop; a guess
MOST_PRODUCTS = 100  # iterations of conjugate gradients at most; a guess
# Products for each stored value up to which a matrix of sparse columns is formed: it then costs as
# much as 500 passes; derived.
MOST_PAIRS = 1500.0


class QuadraticModel(NamedTuple):
    """The model at the present weights; arrays of shape (m,), an intercept last.

    Attributes
    ----------
    w, slopes, l1 : ndarray
    added : ndarray
        What is added to the diagonal of ``X_W' B X_W``.
    bend : ndarray of shape (n,)
    """

    w: np.ndarray
    slopes: np.ndarray
    l1: np.ndarray
    added: np.ndarray
    bend: np.ndarray

    def value(self, w: np.ndarray, slopes: np.ndarray) -> float:
        """Return the model at `w`, whose smooth part has these slopes there; without a constant."""
        # g . (w - u) + (w - u)' H (w - u) / 2 is the mean of both slopes times w - u.
        curved = 0.5 * float((self.slopes + slopes) @ (w - self.w))
        return curved + float(self.l1 @ np.abs(w))


class Damping(NamedTuple):
    """How the share that is added to the diagonal of models follows from the length of steps.

    Attributes
    ----------
    short : float
        Step lengths (1 for a full step) below this are short.
    fall : float
        Divisor of the share after any other step.
    least : float
        The share after a short step, at least.
    """

    short: float
    fall: float
    least: float

    def next_share(self, share: float, length: float) -> float:
        """Return the share after a step of this length: more if it was short, else less."""
        if length > self.short:
            return max(share / self.fall, TINY)
        return max(share * GROWTH, self.least)


# Of losses with a continuous second derivative; and of losses whose second derivative jumps, for
# which models are wrong far away, so that the damping must soon be felt. All guessed.
CURVE_DAMPING = Damping(0.5, GROWTH, TINY)
CORNER_DAMPING = Damping(0.9, 3.0, 1e-4)


class WorkingSet:
    """Some features and the intercept, and how to minimise a model of them.

    Parameters
    ----------
    store : ColumnStore
    features : ndarray of shape (m,)
    intercept : bool
    places : ndarray of shape (m,), optional
        Of the features' columns in the store, if it holds them.
    """

    def __init__(
        self,
        store: ColumnStore,
        features: np.ndarray,
        intercept: bool,
        places: np.ndarray | None = None,
    ) -> None:
        self.store = store
        self.features = features
        self.intercept = intercept
        self.places = store.cover(features) if places is None else places

    def coordinates(self, last: int) -> np.ndarray:
        """Return the places of the coordinates among all weights, of which `last` is the last."""
        return np.append(self.features, last) if self.intercept else self.features

    @cached_property
    def gram(self) -> Gram | None:
        """The working set's matrix, if it pays."""
        if self.features.size > MOST_COORDINATES:
            return None
        gram = Gram(self.store, self.places, self.intercept)
        # Sparse columns: the matrix takes the products of all pairs of values in a row.
        if gram.rows is not None and gram.pairs > MOST_PAIRS:
            return None
        return gram

    def minimise(
        self, model: QuadraticModel, tolerance: float, rough: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the weights that minimise the model, to this violation, and the margins' change.

        `rough` asks for a few passes over the columns only.
        """
        if rough or self.gram is None:
            return self._by_columns(model, tolerance, rough)
        w = self._by_matrix(model, tolerance)
        return w, self.change_of_margins(w - model.w)

    def change_of_margins(self, change: np.ndarray) -> np.ndarray:
        """Return the change of the margins, shape (n,), that a change of the weights makes."""
        m = self.features.size
        out = self.store.combine(self.places, change[:m])
        if self.intercept:
            out += self.store.scale * change[m]
        return out

    def slopes(self, values: np.ndarray) -> np.ndarray:
        """Return ``x_j . values`` of each coordinate."""
        found = self.store.products(self.places, values)
        if self.intercept:
            found = np.append(found, self.store.scale * values.sum())
        return found

    def _by_columns(
        self, model: QuadraticModel, tolerance: float, rough: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the best weights by descent on columns, and the change of the margins."""
        diagonal = self._diagonal(model.bend)
        found = Coordinates(model.w.copy(), model.slopes, model.l1, diagonal + model.added)
        part, rows = self._bending_rows(model.bend, SLIGHT if rough else 0.0)
        columns = part.store.columns
        bend = model.bend[rows]
        added = model.added
        if rough:
            # The rows that are left out still add to the diagonal.
            added = added + diagonal - part._diagonal(bend)
        moved = np.zeros(bend.size)
        moving = Moving(part.places, self.store.scale, bend, moved, added, model.w)
        if rough:
            descend(None, columns, moving, found, tolerance, ROUGH_PASSES)
        else:
            for _ in range(ROUNDS):
                worst = descend(None, columns, moving, found, tolerance, PASSES)
                if worst <= tolerance or time_is_up():
                    break
        return found.w, self.change_of_margins(found.w - model.w)

    def move_pull(self, wanted: np.ndarray, bend: np.ndarray, tolerance: float) -> np.ndarray:
        """Return the change of the multipliers, times C, that takes `wanted` off their pull.

        Of all such changes it is the least, with the inverse second derivatives as weights:
        ``B X_W p`` with ``X_W' B X_W p = wanted``. The equations are solved to an error of about
        `tolerance`, with the rows that bend.
        """
        change = np.zeros(bend.size)
        largest = float(np.abs(wanted).max(initial=0.0))
        if largest <= tolerance:
            return change
        part, rows = self._bending_rows(bend, HARDLY)
        own_bend = bend[rows]
        diagonal = np.maximum(part._diagonal(own_bend), TINY)

        def product(p: np.ndarray) -> np.ndarray:
            return part.slopes(own_bend * part.change_of_margins(p)) + DAMPED * diagonal * p

        forcing = min(MODEL_FORCING, tolerance / largest)
        p, _ = conjugate_gradients(product, lambda r: r / diagonal, wanted, MOST_PRODUCTS, forcing)
        change[rows] = own_bend * part.change_of_margins(p)
        return change

    def _diagonal(self, bend: np.ndarray) -> np.ndarray:
        """Return ``sum_i B_i x_ij^2``, the diagonal of ``X_W' B X_W``."""
        places = self.places
        diagonal = np.empty(places.size + self.intercept)
        bent_squares(self.store.columns, places, bend, diagonal[: places.size])
        # The virtual feature has the same value in each row.
        if self.intercept:
            diagonal[-1] = self.store.scale**2 * bend.sum()
        return diagonal

    def _bending_rows(
        self, bend: np.ndarray, slight: float
    ) -> tuple[WorkingSet, np.ndarray | slice]:
        """Return the working set with the rows that bend only, and these rows."""
        if isinstance(self.store.columns, CSR):
            rows = np.flatnonzero(bend > slight * bend.mean())
            if rows.size < MOST_ROWS * bend.size:
                store = self.store.take_rows(self.places, rows)
                places = np.arange(self.places.size, dtype=self.places.dtype)
                return WorkingSet(store, self.features, self.intercept, places), rows
        return self, slice(None)

    def _by_matrix(self, model: QuadraticModel, tolerance: float) -> np.ndarray:
        """Return the best weights, by descent on the matrix and Newton steps on the support."""
        assert self.gram is not None
        with blas_for(0.0):
            H = self.gram.matrix(model.bend)
            places = np.arange(model.w.size)
            H[places, places] += model.added
            diagonal = H[places, places].copy()
            found = Coordinates(model.w.copy(), model.slopes.copy(), model.l1, diagonal)
            for _ in range(ROUNDS):
                worst = descend(H, None, None, found, tolerance, MATRIX_PASSES)
                if worst <= tolerance or time_is_up():
                    break
                support = support_of(found)
                step = np.zeros(model.w.size)
                step[support] = newton_step(H[np.ix_(support, support)], found, support)
                # The whole step, with weights that would change sign left at zero, if that is
                # better.
                whole = found.w + step
                whole[(whole * found.w < 0.0) & (model.l1 > 0.0)] = 0.0
                slopes = model.slopes + H @ (whole - model.w)
                if model.value(whole, slopes) < model.value(found.w, found.slopes):
                    found.w[:] = whole
                    found.slopes[:] = slopes
                # Else the best point along the step.
                elif move_along(found, step, float(step @ H @ step)):
                    found.slopes[:] = model.slopes + H @ (found.w - model.w)
        return found.w


def support_of(found: Coordinates) -> np.ndarray:
    """Return the coordinates that have a weight, or may have it for nothing."""
    return np.flatnonzero(((found.w != 0.0) | (found.l1 == 0.0)) & (found.diagonal > 0.0))


def newton_step(H: np.ndarray, at: Coordinates, support: np.ndarray) -> np.ndarray:
    """Return the Newton step on the support by a Cholesky factor; overwrites H, its matrix."""
    wanted = -(at.slopes[support] + at.l1[support] * np.sign(at.w[support]))
    diagonal = np.arange(support.size)
    # A diagonal of ones before the factor: weights of features of any size are as precise.
    scale = 1.0 / np.sqrt(H[diagonal, diagonal])
    H *= scale
    H *= scale[:, None]
    H[diagonal, diagonal] += TINY
    # The transpose of a symmetric matrix has the order of Fortran without a copy.
    return scale * cho_solve((cholesky(H.T), True), scale * wanted, check_finite=False)


def move_along(at: Coordinates, step: np.ndarray, curved: float) -> bool:
    """Move to the minimiser of the model along a step; return True if it is another point.

    Along the step the model is a parabola between the places at which a weight becomes zero. A
    weight that is zero there stays exactly zero.
    """
    w, slopes, l1, _ = at
    with np.errstate(divide="ignore", invalid="ignore"):
        places = np.where((w * step < 0.0) & (l1 > 0.0), -w / step, np.inf)
    # The places at which a weight reaches zero, in the order in which the step comes to them.
    order = np.argsort(places)
    order = order[np.isfinite(places[order])]
    # The slope of the model at the start of the step; a weight of zero is charged on any side.
    slope = float(
        slopes @ step + np.where(w != 0.0, l1 * np.sign(w) * step, l1 * np.abs(step)).sum()
    )
    if not slope < 0.0:
        return False
    # Beyond its zero a weight is charged for growing again: the slope jumps by 2 l1 |step_j|.
    breaks = places[order]
    jumps = 2.0 * l1[order] * np.abs(step[order])
    after = slope + np.cumsum(jumps) + curved * breaks  # the slope just beyond each break
    # The minimiser is at the first break behind which the slope is not negative, or in the stretch
    # before it, where the parabola of slope `reached` has its vertex.
    k = int(np.searchsorted(after, 0.0))
    reached = slope + float(jumps[:k].sum())
    tau = np.inf
    if curved > 0.0:
        tau = -reached / curved
    if k < breaks.size:
        tau = min(tau, float(breaks[k]))
    if not np.isfinite(tau):
        return False
    # Rounding must not leave a tiny weight at the break.
    new = w + tau * step
    new[places == tau] = 0.0
    w[:] = new
    return True


def worst_of(model: QuadraticModel) -> float:
    """Return the largest violation of a coordinate at the model's weights."""
    found = np.empty(model.w.size)
    violations(Coordinates(model.w, model.slopes, model.l1, model.added), found)
    return float(found.max(initial=0.0))
