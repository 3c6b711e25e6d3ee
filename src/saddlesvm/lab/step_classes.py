"""Record Crammer and Singer's machine one row's block of variables at a time."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np

from saddlesvm.data import inputs
from saddlesvm.data.labels import check_labels
from saddlesvm.fit.loop import fit
from saddlesvm.lab.step_plane import OPTIMAL, Plane, intercept_name, made_plane, plane_rows
from saddlesvm.lab.step_record import Recorder, short
from saddlesvm.problem.certificate import Evaluation
from saddlesvm.problem.crammer_singer import make_joint_problem
from saddlesvm.problem.loss import Loss
from saddlesvm.rows.layouts import as_rows
from saddlesvm.solvers.crammer_singer import CrammerSinger, JointAscent

COLOURS = 6  # classes that the page can tell apart


def classes_plane(
    X: Any, y: Any, loss: Loss, strength: dict[str, Any], intercept: bool, rows: int, seed: int, name: str
) -> Plane:
    """The plane of the problem of all classes.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
        With at least two features.
    y : array-like of shape (n,)
        Two to six classes.
    loss : Loss
        The hinge.
    strength : dict
        ``C`` or ``lam``.
    intercept : bool
        A regularised intercept, or none.
    rows : int
        Most rows to draw, at random.
    seed : int
    name : str

    Raises
    ------
    ValueError
        There are fewer than two classes among the rows drawn, or more than six.
    """
    design = inputs.as_floats(inputs.as_design(X))
    labels = check_labels(y, design.shape[0])
    drawn = plane_rows(design, rows, seed)
    found, codes = np.unique(labels[drawn.chosen], return_inverse=True)
    if not 2 <= found.size <= COLOURS:
        raise ValueError(f"the step view of all classes shows 2 to {COLOURS} classes; the rows drawn have {found.size}")
    design = as_rows(np.ascontiguousarray(drawn.X), bias=1.0 if intercept else 0.0)
    problem = make_joint_problem(
        design, codes.astype(np.float64), found.size, loss, intercept=intercept_name(intercept), **strength
    )
    best = fit(problem, CrammerSinger(), OPTIMAL)
    return made_plane(drawn, codes, tuple(map(str, found)), problem, best, name)


class ClassesRecorder(Recorder):
    """Dual ascent over one row's block of variables, one visit at a time.

    The bars of a frame are ``-a_ik`` of each row i against each rival k, at the place ``i K + k``.
    """

    watched: ClassVar[tuple[type[Any], ...]] = (JointAscent,)

    @staticmethod
    def shown(solver: Any) -> Any:
        """The solver without shrinking: every visit then computes all scores of one row."""
        return dataclasses.replace(solver, shrinking=False)

    def _visited(self, place: int) -> list[int]:
        return [int(self.state.order[place])]

    def _model(self) -> np.ndarray:
        W = np.array(self._point().w, dtype=np.float64)
        W[:, -1] *= self.problem.scale
        return W

    def _bars(self, point: Any) -> np.ndarray:
        return np.maximum(-point.alpha, 0.0).ravel()

    def _described(self, evaluation: Evaluation) -> dict[str, Any]:
        return {"w": short(np.column_stack([evaluation.coef, evaluation.intercept]).ravel())}

    def _visit(
        self, i: int, before: np.ndarray, bars: tuple[np.ndarray, np.ndarray], evaluation: Evaluation
    ) -> dict[str, Any]:
        """The slopes ``G_k = e_ik + x_i . w_k`` of row i before and after the visit."""
        x, e = np.append(self.plane.X[i], 1.0), np.arange(len(self.plane.classes)) != self.plane.y[i]
        after = np.column_stack([evaluation.coef, evaluation.intercept])
        return {"slopes": short(np.concatenate([before @ x + e, after @ x + e]))}
