"""Kernel machines as linear ones: the fits of their problems over weights of features."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from saddlesvm.fit.limits import Limits
from saddlesvm.multiclass.linear_fit import LinearFits, MemoryRows
from saddlesvm.multiclass.sub_problems import SubProblem
from saddlesvm.problem.intercepts import Free, make_intercept
from saddlesvm.problem.losses import Loss
from saddlesvm.problem.nu import Machine, Novelty
from saddlesvm.runtime.randomness import seed_of
from saddlesvm.solvers.second_order.newton import Newton


def feature_fits(
    model: Any,
    rows: MemoryRows,
    makers: Sequence[Callable[[], SubProblem]],
    loss: Loss,
    weights: np.ndarray | None,
    machine: Machine,
    solver: Any,
    limits: Limits | None = None,
) -> LinearFits:
    """The fits of a machine's sub-problems over rows of features.

    Parameters
    ----------
    model : KernelSVC, SVC, SVR or OneClassSVM
        Whose intercept, limits, seed and callbacks count.
    rows : MemoryRows
        With the virtual feature of the intercept.
    makers : sequence of callables
        Each makes a sub-problem.
    loss : Loss
    weights : ndarray of shape (n,), optional
    machine : Machine
        How a problem is posed over its rows: as it is, or as the one-class machine.
    solver : Solver
        The one-class machine has Newton's method, whatever is given.
    limits : Limits, optional
        Those of the model when left out.
    """
    intercept = make_intercept(model._intercept_kind, rows.X.bias)
    if isinstance(machine, Novelty):
        heavy = float(rows.norms.size) if weights is None else float(weights.sum())
        intercept, solver = Free(rows.X.bias, total=machine.nu * heavy), Newton()
    return LinearFits(
        makers=makers,
        solver=solver,
        limits=limits or model._limits(solver),
        seed=seed_of(model.random_state),
        n_jobs=model.n_jobs,
        told=lambda sub: list(model.callbacks or ()),
        rows=rows,
        loss=loss,
        options={"weights": weights, "intercept": intercept, **model._strength()},
    )
