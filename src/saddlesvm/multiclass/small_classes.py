"""Small problems over the same rows that are solved and certified together, in NumPy.

A problem of some hundred rows takes the solver less time than Python takes to pose it, to call
NumPy for each of its steps and to certify it. Here all classes take their steps together, and the
sums of their certificates are sums of arrays with a row for each. Fits in turn take 2.2 to 2.5
times as long for three classes (iris, wine), and 4.5 to 5 times for ten classes of 400 x 10 (26
November 2026). The formulas are the same as for a single fit. A class that this does not certify,
because rounding or a hard problem is in the way, is left to a fit of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import numpy as np

from saddlesvm.fit.loop import Batch, Ended, ProblemInWork
from saddlesvm.fit.outcome import FitResult, Limits, Outcome, Record, Trace
from saddlesvm.multiclass.fits import TogetherFirst
from saddlesvm.multiclass.sub_problems import SubProblem
from saddlesvm.problem.certificate import Certificate, certificates_of
from saddlesvm.problem.problem import Problem
from saddlesvm.runtime.clock import clock
from saddlesvm.runtime.threads import blas_for
from saddlesvm.solvers.small.dense import Small
from saddlesvm.solvers.small.small_newton import SMALL

EAGERNESS = 0.9  # share of the gap asked for that the steps come to
MOST_STEPS = 100  # after which the classes that are left have a fit of their own


class SmallClasses(TogetherFirst):
    """A batch of problems, see the module.

    Parameters
    ----------
    subs : sequence of SubProblem
        All with all rows.
    problem : Problem
        That of the first; its intercept is not free.
    phase : {DENSE, INTERIOR}
        Its solver.
    weights : ndarray of shape (n,), optional
        The weights of the rows, before the factors of the classes.
    limits : Limits
    rest : callable
        As of :class:`~saddlesvm.multiclass.fits.TogetherFirst`.
    keeps_duals : bool
        Whether the results have dual variables.
    """

    def __init__(
        self,
        subs: Sequence[SubProblem],
        problem: Problem,
        phase: str,
        weights: np.ndarray | None,
        limits: Limits,
        rest: Callable[[list[int]], Batch[FitResult]],
        keeps_duals: bool,
    ) -> None:
        super().__init__(range(len(subs)), rest)
        self.subs = subs
        self.problem = problem
        self.phase = phase
        self.weights = weights
        self.limits = limits
        self.keeps_duals = keeps_duals
        self.begun = False

    def solve_together(self, stop: threading.Event) -> list[ProblemInWork] | None:
        """Return the problems whose gap the steps taken together prove, at first."""
        if self.begun:
            return None
        self.begun = True
        began = clock()
        problem = self.problem
        # The labels of problem k are row k of y; row weights likewise, if any problem has its own.
        members = problem.members
        y = np.array([sub.y[members] for sub in self.subs], dtype=np.float64)
        weights = None
        if self.weights is not None or any(sub.factor != 1.0 for sub in self.subs):
            factors = [self.fill_weights(sub.row_weights(self.weights)) for sub in self.subs]
            weights = np.array([one[members] for one in factors])
        # The solver of a single small problem, with one more axis for the problems.
        with blas_for(0.0), np.errstate(all="ignore"):
            small = Small(problem)
            several = small.side_by_side(y, 1.0 if weights is None else weights)
            found = SMALL[self.phase].together(several, EAGERNESS * self.limits.tol, MOST_STEPS)
            solved = clock()
            certificates = certificates_of(problem, y, weights, found.w, found.a)
        seconds = (solved - began) / len(y), (clock() - solved) / len(y)
        done: list[ProblemInWork] = []
        # Keep what the certificates prove; the rest is solved in turn.
        for k, certificate in enumerate(certificates):
            if certificate.sound and self.limits.prove(certificate):
                done.append(Ended(k))
                self.results[k] = self.result(
                    k, certificate, found.w[k], found.a[k], int(found.steps[k]), seconds
                )
        return done

    def fill_weights(self, weights: np.ndarray | None) -> np.ndarray:
        """Return weights of all rows, 1 if none are given."""
        return np.ones(self.problem.y.size) if weights is None else weights

    def result(
        self,
        k: int,
        certificate: Certificate,
        w: np.ndarray,
        a: np.ndarray,
        steps: int,
        seconds: tuple[float, float],
    ) -> FitResult:
        """Return the result of a problem whose gap is proven at weights w and dual variables a."""
        problem = self.problem
        solving, certifying = seconds
        # The last weight belongs to the virtual feature, whose value is `scale`.
        coef = w[:-1].copy()
        intercept = float(w[-1] * problem.scale)
        touched = steps * a.size
        # A single record: each step looked at all rows, so a step is an epoch.
        trace = Trace()
        trace(
            Record.from_certificate(
                certificate,
                epoch=float(steps),
                rows_touched=touched,
                seconds_solving=solving,
                seconds_certifying=certifying,
                active=a.size,
                change=np.nan,
                remark=f"{self.phase}: {steps} steps, side by side",
                coef=coef,
                intercept=intercept,
                problem=self.subs[k].label,
            )
        )
        # The dual variables of a result are in the C form, an array with one row.
        duals = problem.scatter(problem.C * a)[None] if self.keeps_duals else np.empty(0)
        return FitResult(
            coef=coef,
            intercept=intercept,
            alpha=duals,
            certificate=certificate,
            tol=self.limits.tol,
            outcome=Outcome.CERTIFIED,
            epochs=float(steps),
            rows_touched=touched,
            seconds_solving=solving,
            seconds_certifying=certifying,
            trace=trace,
            reason=self.limits.describe(certificate),
            phases={self.phase: solving},
            gap=self.limits.gap,
        )
