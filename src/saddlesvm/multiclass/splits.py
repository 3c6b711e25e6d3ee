"""The ways to turn many classes into problems, and the problems' scores into one score per class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from saddlesvm.multiclass.one_vs_one import one_vs_one
from saddlesvm.multiclass.sub_problems import SubProblem, one_vs_rest
from saddlesvm.problem.certificate import Point
from saddlesvm.problem.crammer_singer import JointProblem, make_joint_problem
from saddlesvm.problem.intercepts import intercept_kind
from saddlesvm.problem.losses import Hinge, Loss, loss_name, traits_of
from saddlesvm.problem.problem import Problem
from saddlesvm.rows.layouts import Rows
from saddlesvm.solvers.base import one_of
from saddlesvm.solvers.crammer_singer import CrammerSinger
from saddlesvm.solvers.register import make_solver

SHAPES = ("ovr", "ovo")


@dataclass(frozen=True)
class JointSubProblem(SubProblem):
    """The single problem of Crammer and Singer's machine; ``y`` holds class numbers.

    Attributes
    ----------
    n_classes : int
    """

    n_classes: int = 2

    @property
    def n_vectors(self) -> int:
        """One a class; for two classes the one of :func:`use_two_class_form`."""
        return self.n_classes if self.n_classes > 2 else 1

    def problem(self, X: Rows, loss: Loss, **options: Any) -> Problem:
        return make_joint_problem(X, self.y, self.n_classes, loss, members=self.members, **options)

    def start(self, problem: Problem, duals: np.ndarray, former_C: float, w: np.ndarray) -> Point:
        """The duals of an earlier fit, shape (n_classes, n_all); for two classes their difference, shape (1, n_all)."""
        assert isinstance(problem, JointProblem)
        both = np.vstack([-0.5 * duals, 0.5 * duals]) if duals.shape[0] == 1 else duals
        return Point(alpha=problem.feasible(both.T / former_C))


def all_at_once(codes: np.ndarray, classes: np.ndarray) -> list[Callable[[], SubProblem]]:
    """One problem in which all classes compete."""
    return [lambda: JointSubProblem(0, "", codes.astype(np.float64), None, classes.size)]


SPLITS: dict[str, Callable[[np.ndarray, np.ndarray], list[Callable[[], SubProblem]]]] = {
    "ovr": one_vs_rest,
    "ovo": one_vs_one,
    "crammer_singer": all_at_once,
}


def loss_for(multi_class: str, loss: Loss) -> Loss:
    """The loss of the sub-problems. Crammer and Singer's machine has the hinge: also where the default was left.

    Raises
    ------
    ValueError
        The joint machine is asked for with a loss that it does not have.
    """
    if multi_class != "crammer_singer":
        return loss
    if not traits_of(loss).joint:
        raise ValueError(f"multi_class='crammer_singer' is the hinge loss's: use loss='hinge', not {loss_name(loss)!r}")
    return Hinge()


def check_split(multi_class: str, shape: str, intercept: str) -> None:
    """Raise ValueError for a way to split, or a shape of the scores, that is unknown or does not go with the rest."""
    one_of("multi_class", multi_class, tuple(SPLITS))
    one_of("decision_function_shape", shape, SHAPES)
    if multi_class == "crammer_singer" and intercept_kind(intercept).constrained:
        raise ValueError("multi_class='crammer_singer' has no free intercept: use intercept='regularized'")


def solver_for(multi_class: str, solver: Any) -> Any:
    """The solver object for the sub-problems.

    Raises
    ------
    ValueError
        A solver for two classes is asked to solve Crammer and Singer's problem, or the other way round.
    """
    if multi_class != "crammer_singer":
        made = make_solver(solver)
        if isinstance(made, CrammerSinger):
            raise ValueError("the solver 'crammer_singer' goes with multi_class='crammer_singer' only")
        return made
    if isinstance(solver, CrammerSinger):
        return solver
    if solver not in ("auto", CrammerSinger.name):
        raise ValueError(f"multi_class='crammer_singer' has a solver of its own: use solver='auto'; got {solver!r}")
    return CrammerSinger()


def use_two_class_form(model: Any) -> None:
    """Write a fitted joint model of two classes as one vector, the second class against the first."""
    model.coef_ = model.coef_[1:] - model.coef_[:1]
    model.intercept_ = model.intercept_[1:] - model.intercept_[:1]
    model.dual_coef_ = (model.dual_coef_[[1]] - model.dual_coef_[[0]]).toarray()
