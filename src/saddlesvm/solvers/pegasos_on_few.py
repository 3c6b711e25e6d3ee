"""Pegasos on rows that have few of a model's features: only the weights of these features are touched.

The state of a run over d features holds the pull, the lazy sum of pulls and the sum of an earlier window, three numbers
a feature. A pass moves the numbers of features that its rows have; to all others it does the same linear map, which is
seldom more than the identity (the scale is multiplied in, a window ends). So a pass runs on the rows' own features and
on three probes, features of no row that begin with the numbers (1, 0, 0), (0, 1, 0) and (0, 0, 1): what becomes of the
probes is the map, and the other features get it only if it is not the identity.

For the certificate, one more feature of no row stands for the weights that are not touched: it has their norm.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple

import numpy as np

from saddlesvm.problem.bounds import gamma
from saddlesvm.problem.certificate import Point
from saddlesvm.problem.problem import Problem
from saddlesvm.rows.layouts import CSR, Rows
from saddlesvm.runtime.compiled import kernel
from saddlesvm.solvers.pegasos import Pegasos, PegasosState

WORTH = 4  # times the features of the rows: models with more features than that are worth it
LEAST = 100_000  # features; with fewer, a pass over all is as quick (measured: 16,384 features, 0.5 to 0.8 of the time)
ARRAYS = ("w", "u", "earlier")  # of a state, with a number for each feature
PROBES = np.eye(len(ARRAYS))
KEPT = (
    "w", "u", "numbers", "earlier", "chosen", "choice", "kept_next", "iteration", "rows_touched", "window_start",
    "earlier_start",
)  # fmt: skip


def continued(old: PegasosState, fresh: PegasosState) -> PegasosState:
    """The iterates of a run with room for new rows."""
    return dataclasses.replace(fresh, **{name: getattr(old, name) for name in KEPT})


class FewFeatures:
    """Rows as rows of the features that they have, the one of the untouched weights, and the probes.

    Attributes
    ----------
    X : CSR
        Of shape (n, m + 4).
    places : ndarray of shape (m + 1,)
        The numbers of the features among all, ascending, and the place of the virtual feature.
    """

    def __init__(self, X: CSR, features: np.ndarray, columns: np.ndarray) -> None:
        self.X = X._replace(indices=columns.astype(np.int32), n_features=features.size + 1 + len(PROBES))
        self.places = np.append(features, X.n_features)
        self.width = X.n_features + 1

    @classmethod
    def of(cls, X: Rows, solver: Pegasos, identity: bool) -> FewFeatures | None:
        """The features of rows; None where they are many, or a state of the solver holds more than three arrays."""
        if not X.sparse or not identity or solver.output == "random" or X.n_features < LEAST:
            return None
        features, columns = np.unique(X.indices, return_inverse=True)
        return cls(X, features, columns) if WORTH * features.size < X.n_features else None

    def whole(self, fresh: PegasosState) -> PegasosState:
        """The state over all features before the first pass."""
        sizes = {"w": self.width, "u": self.width, "earlier": self.width + 1}
        zeros: dict[str, Any] = {
            name: np.zeros(size if getattr(fresh, name).size else 0, getattr(fresh, name).dtype)
            for name, size in sizes.items()
        }
        return dataclasses.replace(fresh, **zeros)

    def part(self, whole: PegasosState, fresh: PegasosState) -> PegasosState:
        """The state over the features of the rows, with the probes."""
        found = continued(whole, fresh)
        for probe, name in zip(PROBES, ARRAYS, strict=True):
            given = getattr(whole, name)
            if given.size:
                own, last = given[self.places[:-1]], given[self.width - 1 :]
                setattr(found, name, np.concatenate([own, [0.0], probe, last]).astype(given.dtype))
        return found

    def taken_back(self, solver: Pegasos, whole: PegasosState, part: PegasosState) -> Model:
        """The state and the weights over all features after a pass; the arrays of `whole` are changed."""
        m = self.places.size - 1
        names = [name for name in ARRAYS if getattr(part, name).size]
        linear = np.eye(len(ARRAYS))
        linear[: len(names), : len(names)] = [getattr(part, name)[m + 1 : m + 1 + len(names)] for name in names]
        coef = np.empty(self.width - 1)
        changed = not np.array_equal(linear, np.eye(len(ARRAYS)))
        total = moved(whole.w, whole.u, whole.earlier, linear, changed, np.array(solver.shares(part)), coef)
        own = coef[self.places[:-1]]
        rest = max(total - float(own @ own), 0.0) + 2.0 * gamma(self.width + 8) * total
        for name in names:
            array, found = getattr(whole, name), getattr(part, name)
            array[self.places[:-1]] = found[:m]
            array[self.width - 1 :] = found[m + 1 + len(PROBES) :]
        kept = {name: getattr(part, name) for name in KEPT if name not in names}
        return Model(dataclasses.replace(whole, **kept), coef, math.sqrt(rest))

    def point(self, solver: Pegasos, problem: Problem, part: PegasosState, model: Model) -> Point:
        """The model as a point of the rows' own problem; its weights of their features go to ``model.coef``."""
        point, m = solver.solution(problem, part), self.places.size - 1
        assert point.w is not None
        point.w[m:-1] = 0.0
        point.w[m] = model.rest
        model.coef[self.places[:-1]] = point.w[:m]
        return point


class Model(NamedTuple):
    """The model that a pass leaves.

    Attributes
    ----------
    state : PegasosState
        Over all features.
    coef : ndarray of shape (d,)
    rest : float
        The norm of the weights that were not touched, at least.
    """

    state: PegasosState
    coef: np.ndarray
    rest: float


@kernel
def moved(
    v: np.ndarray, u: np.ndarray, e: np.ndarray, map_: np.ndarray, changed: bool, shares: np.ndarray, out: np.ndarray
) -> float:
    """``out = shares[0] v + shares[1] u + shares[2] e``, and the sum of its squares, after the three are mapped.

    `u` and `e` are empty where a run has no averages.
    """
    total, a, b, c = 0.0, shares[0], shares[1], shares[2]
    if changed:
        for j in range(v.size):
            if u.size:
                x, y, z = np.float64(v[j]), u[j], e[j]
                v[j] = map_[0, 0] * x + map_[0, 1] * y + map_[0, 2] * z
                u[j] = map_[1, 0] * x + map_[1, 1] * y + map_[1, 2] * z
                e[j] = map_[2, 0] * x + map_[2, 1] * y + map_[2, 2] * z
            else:
                v[j] *= map_[0, 0]
    if u.size:
        for j in range(out.size):
            x = a * v[j] + b * u[j] + c * e[j]
            out[j] = x
            total += x * x
    else:
        for j in range(out.size):
            x = a * v[j]
            out[j] = x
            total += x * x
    return total
