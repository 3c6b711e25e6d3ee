"""The state of ``partial_fit``: Pegasos over batches of rows that arrive in turn."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from saddlesvm.data.door import Design
from saddlesvm.multiclass.sub_problems import SubProblem
from saddlesvm.problem.certificate import Certificate, Evaluation, evaluate
from saddlesvm.problem.intercepts import InterceptName, intercept_kind
from saddlesvm.problem.loss import Loss
from saddlesvm.problem.penalties import Penalty
from saddlesvm.problem.problem import Problem
from saddlesvm.solvers.base import Budget, check_penalty
from saddlesvm.solvers.pegasos import Pegasos, PegasosState

# Between the seeds of two calls: a prime, so that seeds of few classes and calls differ.
SEED_STEP = 7919
# The fields of a state that do not belong to the rows of one call.
CONTINUED = (
    "w", "u", "numbers", "earlier", "chosen", "choice", "kept_next", "iteration", "rows_touched",
    "window_start", "earlier_start",
)  # fmt: skip


def check_stream(
    given: Any, known: np.ndarray | None, first: bool, class_weight: object
) -> np.ndarray:
    """The classes of a stream, ascending.

    Parameters
    ----------
    given : array-like or None
        The classes that this call names.
    known : ndarray or None
        The classes of earlier calls, or of an earlier fit.
    first : bool
        True if this call begins the stream.

    Raises
    ------
    ValueError
        There are fewer than two classes, other classes than before, or class weights that need all
        labels at once.
    """
    if isinstance(class_weight, str):
        raise ValueError(
            f"class_weight={class_weight!r} needs all labels at once: for partial_fit, give a "
            "dict, such as one of "
            "sklearn.utils.class_weight.compute_class_weight('balanced', classes=classes, y=y) "
            "with a large sample of y"
        )
    classes = known if given is None else np.unique(given)
    if classes is None:
        raise ValueError("classes must be given in the first call of partial_fit")
    if not (first or known is None or np.array_equal(classes, known)):
        raise ValueError(
            f"classes are {known.tolist()} since the first call of partial_fit; got "
            f"{classes.tolist()}"
        )
    if classes.size < 2:
        raise ValueError(f"classes must hold at least two labels; got {classes.tolist()}")
    return classes


class PegasosStream:
    """The iterates of two-class problems that see the same rows, a call at a time.

    Parameters
    ----------
    solver : Pegasos
    loss : Loss
    intercept : {"none", "regularized", "free"}
    scaling : float
        Value of the virtual constant feature.
    lam : float
        lambda, the same for all calls.
    seed : int
    penalty : Penalty, optional
        Half a square when left out.
    """

    def __init__(
        self,
        solver: Pegasos,
        loss: Loss,
        intercept: InterceptName,
        scaling: float,
        lam: float,
        seed: int,
        penalty: Penalty | None = None,
    ) -> None:
        self.solver = solver
        self.loss = loss
        self.intercept = intercept
        self.penalty = penalty
        self.scaling = float(scaling)
        self.lam = lam
        self.seed = seed
        self.states: list[PegasosState] = []
        self.passes = 0

    def copy(self) -> PegasosStream:
        """Return a stream that goes on by itself."""
        made = copy.copy(self)
        made.states = list(self.states)
        return made

    def learn(
        self, X: Design, problems: Sequence[SubProblem], weights: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray, list[Certificate]]:
        """Make a pass over the rows for each sub-problem; return weights and certificates."""
        design: Any = X.with_feature(
            self.scaling if intercept_kind(self.intercept).present else 0.0
        )
        coefs = []
        intercepts = []
        certificates = []
        for k, sub in enumerate(problems):
            problem = sub.problem(
                design, self.loss,
                lam=self.lam, weights=weights, intercept=self.intercept, penalty=self.penalty,
            )  # fmt: skip
            check_penalty(problem, self.solver)
            # The rows of a call may be fewer than the solver's batch.
            solver = dataclasses.replace(
                self.solver, batch_size=min(self.solver.batch_size, problem.members.size)
            )
            evaluation = self._learn_one(k, solver, problem)
            coefs.append(evaluation.coef)
            intercepts.append(evaluation.intercept)
            certificates.append(evaluation.certificate)
        self.passes += 1
        return (
            coefs[0][None] if len(coefs) == 1 else np.stack(coefs),
            np.array(intercepts),
            certificates,
        )

    def _learn_one(self, k: int, solver: Pegasos, problem: Problem) -> Evaluation:
        """Make a pass over the rows of sub-problem k; return its weights with their certificate."""
        state = solver.init(problem, self.seed + k + SEED_STEP * self.passes)
        # Go on from the state in which the last call left this sub-problem.
        if k < len(self.states):
            earlier = self.states[k]
            state = dataclasses.replace(
                state, **{name: getattr(earlier, name) for name in CONTINUED}
            )
        goal = state.rows_touched + problem.members.size
        while state.rows_touched < goal:
            state = solver.step(problem, state, Budget(goal - state.rows_touched))
        self.states[k : k + 1] = [state]
        return evaluate(problem, solver.solution(problem, state))
