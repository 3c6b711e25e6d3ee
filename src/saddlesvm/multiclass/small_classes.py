"""Many small problems over the same rows: solved and certified together, in NumPy.

A problem of some hundred rows takes the solver less time than Python takes to pose it, to call NumPy for each of its
steps and to certify it. Here all classes take their steps together, and the sums of their certificates are those of
arrays with a row for each. The formulas are those of a single fit. A class that this does not certify, because rounding
or a hard problem is in the way, is left to the fit of its own that it would otherwise have had.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import numpy as np

from saddlesvm.fit.limits import Limits
from saddlesvm.fit.loop import Batch, Ended, Worked
from saddlesvm.fit.outcome import FitResult, Outcome
from saddlesvm.fit.trace import Record, Trace
from saddlesvm.multiclass.sub_problems import SubProblem
from saddlesvm.problem.certificate import Certificate, certificates_of
from saddlesvm.problem.problem import Problem
from saddlesvm.runtime.clock import clock
from saddlesvm.runtime.threads import blas_for
from saddlesvm.solvers.automatic.auto import DENSE, SMALL, small_phase
from saddlesvm.solvers.small.dense import Small

EAGERNESS = 0.9  # share of the gap asked for that the steps come to
MOST_STEPS = 100  # after which the classes that are left have a fit of their own


def takes(problem: Problem) -> bool:
    """Whether problems like this one, over the same rows, may be solved together."""
    return small_phase(problem) is not None and not problem.intercept.constrained


class SmallClasses:
    """A batch of problems, see the module.

    Parameters
    ----------
    subs : sequence of SubProblem
        All with all rows.
    problem : Problem
        That of the first.
    weights : ndarray of shape (n,), optional
        Those of the rows, before the factors of the classes.
    limits : Limits
    rest : callable
        Makes a batch of those problems that need a fit of their own.
    keeps_duals : bool
        Whether the results have dual variables.
    """

    def __init__(
        self,
        subs: Sequence[SubProblem],
        problem: Problem,
        weights: np.ndarray | None,
        limits: Limits,
        rest: Callable[[list[int]], Batch[FitResult]],
        keeps_duals: bool,
    ) -> None:
        self.problems: Sequence[int] = range(len(subs))
        self.subs, self.problem, self.phase = subs, problem, small_phase(problem) or DENSE
        self.weights, self.limits, self.make_rest, self.keeps_duals = weights, limits, rest, keeps_duals
        self.rest: Batch[FitResult] | None = None
        self.results: dict[int, FitResult] = {}
        self.begun = False

    def advance(self, live: list[int], stop: threading.Event) -> Sequence[Worked]:
        """Solve and certify all problems; those that need it have a fit of their own then."""
        if not self.begun:
            self.begun = True
            return self.worked()
        self.rest = self.rest or self.make_rest(live)
        return self.rest.advance(live, stop)

    def worked(self) -> list[Worked]:
        """The problems whose gap the steps taken together prove."""
        began, problem = clock(), self.problem
        y = np.array([problem.gathered(sub.y) for sub in self.subs], dtype=np.float64)
        s = [sub.row_weights(self.weights) for sub in self.subs]
        weights = None if all(one is None for one in s) else np.array([problem.gathered(self.of(one)) for one in s])
        with blas_for(0.0), np.errstate(all="ignore"):
            small = Small(problem)
            several = small.side_by_side(y, 1.0 if weights is None else weights)
            found = SMALL[self.phase].together(several, EAGERNESS * self.limits.tol, MOST_STEPS)
            solved = clock()
            certificates = certificates_of(problem, y, weights, found.w, found.a)
        seconds = (solved - began) / len(y), (clock() - solved) / len(y)
        done: list[Worked] = []
        for k, certificate in enumerate(certificates):
            if certificate.sound and self.limits.prove(certificate):
                done.append(Ended(k))
                self.results[k] = self.result(k, certificate, found.w[k], found.a[k], int(found.steps[k]), seconds)
        return done

    def of(self, weights: np.ndarray | None) -> np.ndarray:
        """Weights of all rows, ones where none are given."""
        return np.ones(self.problem.y.size) if weights is None else weights

    def result(
        self, k: int, certificate: Certificate, w: np.ndarray, a: np.ndarray, steps: int, seconds: tuple[float, float]
    ) -> FitResult:
        """The result of a problem whose gap is proven, with the weights w and the dual variables a of its rows; of
        the result they are in the C form, an array with one row."""
        problem, trace, (solving, certifying) = self.problem, Trace(), seconds
        coef, intercept, touched = w[:-1].copy(), problem.intercept.published(w, 0.0), steps * a.size
        trace(Record(
            epoch=float(steps), rows_touched=touched, seconds_solving=solving, seconds_certifying=certifying,
            primal=certificate.primal, dual=certificate.dual, gap=certificate.gap,
            relative_gap=certificate.relative_gap, active=a.size, change=np.nan,
            remark=f"{self.phase}: {steps} steps, side by side", coef=coef, intercept=intercept,
            problem=self.subs[k].label, form=certificate.form, primal_rounding=certificate.primal_rounding,
            dual_rounding=certificate.dual_rounding,
        ))  # fmt: skip
        duals = problem.spread(problem.C * a)[None] if self.keeps_duals else np.empty(0)
        return FitResult(
            coef=coef, intercept=intercept, alpha=duals, certificate=certificate, tol=self.limits.tol,
            outcome=Outcome.CERTIFIED, epochs=float(steps), rows_touched=touched, seconds_solving=solving,
            seconds_certifying=certifying, trace=trace, reason=self.limits.proven(certificate),
            phases={self.phase: solving}, gap=self.limits.gap,
        )  # fmt: skip

    def finished(self, index: int) -> FitResult:
        """Return the result of a problem."""
        if index in self.results:
            return self.results.pop(index)
        assert self.rest is not None
        return self.rest.finished(index)
