"""The rows that a model has after it forgot some, or learned more: the data as they are, and the numbers of the rows.

Rows are forgotten without a copy of the others. A model in memory keeps its problems over all rows of the fit, whose
members become fewer, and what passes over them have found (:mod:`saddlesvm.answers.kept_point`). The remaining rows are
put together where something asks for them, and after many of them are gone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from saddlesvm.answers.kept_point import KeptPoint
from saddlesvm.answers.steps import can_come_nearer
from saddlesvm.data.labels import has_columns
from saddlesvm.estimators.automatic_C import made_automatic
from saddlesvm.estimators.proven import Data, problems_of, weights_of
from saddlesvm.multiclass.linear_fit import End, MemoryRows
from saddlesvm.multiclass.splits import SPLITS
from saddlesvm.problem.certificate import Evaluation
from saddlesvm.problem.loss import is_smooth
from saddlesvm.problem.problem import Problem, is_classification
from saddlesvm.rows.layouts import as_rows
from saddlesvm.rows.passes import InMemory
from saddlesvm.solvers.automatic.auto import FINISH, Auto

FEWEST = 0.7  # share of the rows of a fit below which a fit to the remaining ones, put together, follows


@dataclass
class Remaining:
    """Rows of a fit that a model still has, and its points over them; no points where only a fit leads on.

    Attributes
    ----------
    data : Data
        All rows of the fit.
    rows : ndarray of shape (m,)
        The numbers of the remaining ones, ascending.
    points : list of KeptPoint
        One for each sub-problem.
    """

    data: Data
    rows: np.ndarray
    points: list[KeptPoint]

    def part(self) -> Data:
        """The remaining rows: a copy, where some are gone."""
        return self.data if self.rows.size == self.data.X.shape[0] else part(self.data, self.rows)


def part(data: Data, rows: np.ndarray) -> Data:
    """Some of the rows, in memory."""
    weights = None if data.sample_weight is None else np.asarray(data.sample_weight)[rows]
    return Data(data.X[rows], np.asarray(data.y)[rows], weights)


def joined(first: Data, second: Data) -> Data:
    """The rows of both, one below the other; a weight that is not given is 1 where the others are."""
    either = sparse.issparse(first.X) or sparse.issparse(second.X)
    X = sparse.vstack([first.X, second.X], format="csr") if either else np.concatenate([first.X, second.X])
    y = np.concatenate([np.asarray(first.y), np.asarray(second.y)])
    if first.sample_weight is None and second.sample_weight is None:
        return Data(X, y, None)
    own = [np.ones(one.X.shape[0]) if one.sample_weight is None else one.sample_weight for one in (first, second)]
    return Data(X, y, np.concatenate(own))


def remaining_of(model: Any, data: Data, ended: bool) -> Remaining | None:
    """All rows of a fitted model, ready to be forgotten; None for models and problems that need a fit for that. `ended`
    says that the data are those of the last fit in this process, which has left its problems behind.

    These are models whose options ask for the course of a fit, or for more than weights; and problems whose constants
    depend on the number of rows, or whose dual variables have a given sum.
    """
    asked = (model.max_iter, model.max_time, model.checkpoint, model.callbacks or None, model.lam)
    plain = all(one is None for one in asked) and model.keep == "best" and model.gap == 0.0
    plain = plain and not getattr(model, "probability", False) and made_automatic(model.C) is None
    plain = plain and getattr(model, "class_weight", None) is None and getattr(model, "multi_class", "ovr") in SPLITS
    if not (plain and isinstance(model._made_solver(), Auto)):
        return None
    ends: list[End] = model.ends_of_fits() if ended else []
    problems = [one.problem for one in ends] or problems_of(model, data)
    if problems is None or len(problems) != len(model.certificates_) or not all(map(_holds, problems)):
        return None
    own = _have_duals(model)
    if not own and not can_come_nearer(problems[0]):
        return None
    facts = zip(problems, weights_of(model, problems), model.certificates_, strict=True)
    factors = [one.equations for one in ends] or [None] * len(problems)
    points = [
        KeptPoint(problem, w, model.duals_of(k) / problem.C if own else None, certificate, equations=factors[k])
        for k, (problem, w, certificate) in enumerate(facts)
    ]
    return Remaining(data, np.arange(data.X.shape[0]), points)


def _holds(problem: Problem) -> bool:
    """Whether a point of the problem can be kept."""
    alone = type(problem) is Problem and not problem.intercept.constrained and not problem.fixed.size
    return alone and problem.penalty.identity() and isinstance(problem.passes, InMemory)


def _have_duals(model: Any) -> bool:
    """Whether the dual variables of a model are a solver's own, and not those of its weights."""
    return hasattr(model, "dual_coef_") and not (
        is_smooth(model.check_options()) and FINISH in vars(model).get("phases_", {})
    )


class Change(NamedTuple):
    """Fewer rows, and a model of each sub-problem, whose dual variables are those of these rows."""

    left: Remaining
    models: list[Evaluation]

    def holds(self, tol: float) -> bool:
        """Whether all relative gaps are at most `tol`."""
        return all(one.certificate.relative_gap <= tol for one in self.models)

    def start(self) -> dict[str, Any]:
        """Where a fit goes on from, as its arguments: the dual variables, or the weights where these alone count."""
        if self.left.points[0].alpha is None:
            intercepts = np.array([one.intercept for one in self.models])
            return {"coef_init": np.array([one.coef for one in self.models]), "intercept_init": intercepts}
        pairs = zip(self.models, self.left.points, strict=True)
        duals = [sparse.csr_array(point.problem.C * one.alpha[None]) for one, point in pairs]
        return {"dual_coef_init": sparse.vstack(duals, format="csr")}


def without(left: Remaining, gone: np.ndarray, tol: float) -> Change | None:
    """The rows without those that a mask of shape (m,) selects, and models of them; None where there are no points, or
    few rows would be left, or a class without any."""
    if not left.points or left.rows.size - gone.sum() < FEWEST * left.data.X.shape[0]:
        return None
    everywhere = np.zeros(left.data.X.shape[0], dtype=bool)
    everywhere[left.rows[gone]] = True
    for problem in (point.problem for point in left.points):
        y = problem.y[problem.members[~everywhere[problem.members]]]
        if not y.size or (is_classification(problem.loss) and not y.min() < 0.0 < y.max()):
            return None
    points, found = zip(*(point.without(everywhere, tol) for point in left.points), strict=True)
    rows = left.rows[~gone]
    return Change(Remaining(left.data, rows, [*points]), [replace(one, alpha=one.alpha[rows]) for one in found])


def with_more(model: Any, left: Remaining, more: Data) -> Change | None:
    """The rows with further ones behind them, and models of all; None where there are no points, or for labels of
    another class."""
    classes = getattr(model, "classes_", None)
    if not left.points or has_columns(more.y) or not (classes is None or np.isin(more.y, classes).all()):
        return None
    data, n = joined(left.data, more), left.data.X.shape[0]
    posed = model.training_problems(data.y, data.sample_weight, data.X.shape[0])
    first, new = left.points[0].problem, model.rows_for_parts(more.X, 1)
    ready = MemoryRows(as_rows(data.X, first.scale), np.concatenate([first.norms, new.norms]), first.threads)
    points, found = [], []
    for sub, point in zip(posed.problems, left.points, strict=True):
        problem = model.part_problem(sub, posed, ready)
        added = problem.members[np.searchsorted(problem.members, n) :]
        point, one = point.within(problem.among(np.concatenate([point.problem.members, added])), added.size, model.tol)
        points.append(point)
        found.append(one)
    rows = np.concatenate([left.rows, np.arange(n, data.X.shape[0])])
    return Change(Remaining(data, rows, points), [replace(one, alpha=one.alpha[rows]) for one in found])
