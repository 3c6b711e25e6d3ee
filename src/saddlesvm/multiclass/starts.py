"""Where the fits of sub-problems begin: at a former fit, or at weights or dual variables that the user gives."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy import sparse

from saddlesvm.fit.warm_start import cut, from_weights
from saddlesvm.multiclass.sub_problems import SubProblem
from saddlesvm.problem.certificate import Point
from saddlesvm.problem.penalties import holds_square
from saddlesvm.problem.problem import Problem
from saddlesvm.solvers.automatic.auto import FINISH, Auto

ROUNDING = 1e-9  # of its size, that a dual variable may be beyond its bound


class FormerFit(NamedTuple):
    """A fit, or a point that one has reached, from which another begins.

    Attributes
    ----------
    duals : ndarray or CSR array of shape (vectors, n), or None
        Dual variables in the C form, if the model has them.
    coef : ndarray of shape (vectors, d)
    intercept : ndarray of shape (vectors,)
    C : float
    uses_lambda : bool
        Whether lambda was given; a sub-problem over a share of the rows then has a C of its own.
    phases : list of dict
        For each sub-problem, seconds by solver or phase.
    """

    duals: Any
    coef: np.ndarray
    intercept: np.ndarray
    C: float
    uses_lambda: bool
    phases: list[dict[str, float]]

    def start(self, sub: SubProblem, problem: Problem, count: int, alone: bool = False) -> Point | None:
        """The starting point of a sub-problem, one of `count`; None where the former fit has another shape.

        `alone` asks for weights alone.
        """
        vectors = count * sub.n_vectors
        if self.coef.shape != (vectors, problem.n_features):
            return None
        w = np.append(self.coef[sub.index], self.intercept[sub.index] / (problem.scale or 1.0))
        if alone:
            return Point(w)
        at = sub.start_at(np.column_stack([self.coef, self.intercept / (problem.scale or 1.0)]))
        if at is not None or self.duals is None or self.duals.shape != (vectors, problem.y.size):
            return at
        duals = self.duals[[sub.index]] if count > 1 else self.duals
        share = problem.y.size / problem.n if self.uses_lambda else 1.0
        return sub.start(problem, duals, self.C * share, w)

    def solver(self, solver: Any, index: int) -> Any:
        """The solver; the automatic one begins with its finish where the former fit of the sub-problem used it."""
        if isinstance(solver, Auto) and index < len(self.phases):
            return dataclasses.replace(solver, begin=FINISH if FINISH in self.phases[index] else solver.begin)
        return solver


@dataclass(frozen=True)
class GivenWeights:
    """Given weights from which every sub-problem begins.

    Attributes
    ----------
    coef : ndarray of shape (vectors, d)
    intercept : ndarray of shape (vectors,)
    """

    coef: np.ndarray
    intercept: np.ndarray

    def start(self, sub: SubProblem, problem: Problem, count: int, alone: bool = False) -> Point:
        """The starting point of a sub-problem, one of `count`; `alone` asks for weights alone.

        Raises
        ------
        ValueError
            The weights have another shape than the model will have, or its solver begins at dual points only.
        """
        vectors = count * sub.n_vectors
        if self.coef.shape != (vectors, problem.n_features) or self.intercept.shape != (vectors,):
            raise ValueError(
                f"coef_init and intercept_init must have the shapes of coef_ and intercept_, {vectors} x "
                f"{problem.n_features} and {vectors}; got {' x '.join(map(str, self.coef.shape))} and "
                f"{' x '.join(map(str, self.intercept.shape))}"
            )
        if self.intercept.any() and not problem.scale:
            raise ValueError("intercept_init is given, but the model has no intercept: leave it out")
        W = np.column_stack([self.coef, self.intercept / (problem.scale or 1.0)])
        at = Point(W[sub.index]) if alone else sub.start_at(W)
        if at is None and sub.n_vectors > 1:
            raise ValueError("coef_init needs multi_class 'ovr', 'ovo' or 'multinomial': others start from dual points")
        return at or from_weights(problem, W[sub.index])

    def solver(self, solver: Any, index: int) -> Any:
        """The solver as it is."""
        return solver


@dataclass(frozen=True)
class GivenDuals:
    """Given dual variables at which every sub-problem begins, as they are.

    Attributes
    ----------
    duals : ndarray or CSR array of shape (vectors, n)
        In the C form, as ``dual_coef_``: ``coef = duals @ X``.
    """

    duals: Any

    def start(self, sub: SubProblem, problem: Problem, count: int, alone: bool = False) -> Point:
        """The starting point of a sub-problem, one of `count`; `alone` asks for weights alone.

        Raises
        ------
        ValueError
            The variables have another shape than the model's, or are not within their bounds, or its solver begins at
            weights only.
        """
        if alone or sub.n_vectors > 1 or not holds_square(problem.penalty):
            raise ValueError(
                "dual_coef_init needs multi_class='ovr' or 'ovo', a penalty with a square, and a solver that starts at "
                "dual variables: give coef_init"
            )
        if self.duals.shape != (count, problem.y.size):
            raise ValueError(
                f"dual_coef_init must have the shape of dual_coef_, {count} x {problem.y.size}; got "
                f"{' x '.join(map(str, self.duals.shape))}"
            )
        row = self.duals[[sub.index]].toarray()[0] if sparse.issparse(self.duals) else self.duals[sub.index]
        given, alpha = np.zeros(problem.y.size), np.zeros(problem.y.size)
        given[problem.members] = alpha[problem.members] = row[problem.members] / problem.C
        cut(problem.pointwise, problem.members, alpha)
        beyond = np.flatnonzero(np.abs(alpha - given) > ROUNDING * np.abs(given))
        if beyond.size:
            i, of = int(beyond[0]), f" of {sub.label}" if sub.label else ""
            raise ValueError(
                f"dual_coef_init{of} holds {problem.C * given[i]:.6g} for row {i}, whose label is {problem.y[i]:g}: "
                f"the nearest value that the loss allows is {problem.C * alpha[i]:.6g}"
            )
        return Point(alpha=alpha)

    def solver(self, solver: Any, index: int) -> Any:
        """The solver as it is.

        Raises
        ------
        ValueError
            It has no dual variables to begin at.
        """
        if not solver.begins_at_duals:
            raise ValueError(f"{solver!r} starts from weights, not from dual_coef_init: give coef_init")
        return solver


GivenStart: TypeAlias = GivenWeights | GivenDuals


def given_start(coef: Any, intercept: Any, duals: Any = None) -> GivenStart | None:
    """The start at given weights, with intercepts of zero where they are left out, or at given dual variables; None
    where none are given.

    Raises
    ------
    ValueError
        Numbers are not finite, or intercepts are given without weights, or both weights and dual variables.
    """
    if duals is not None:
        if coef is not None or intercept is not None:
            raise ValueError("give coef_init (with intercept_init) or dual_coef_init, not both")
        A = sparse.csr_array(duals) if sparse.issparse(duals) else np.atleast_2d(np.asarray(duals, dtype=np.float64))
        if not np.isfinite(A.data if sparse.issparse(A) else A).all():
            raise ValueError("dual_coef_init must be finite numbers")
        return GivenDuals(A)
    if coef is None and intercept is None:
        return None
    if coef is None:
        raise ValueError("intercept_init is given without coef_init: give both")
    W = np.atleast_2d(np.asarray(coef, dtype=np.float64))
    b = np.zeros(len(W)) if intercept is None else np.ravel(np.asarray(intercept, dtype=np.float64))
    if not (np.isfinite(W).all() and np.isfinite(b).all()):
        raise ValueError("coef_init and intercept_init must be finite numbers")
    return GivenWeights(W, b)
