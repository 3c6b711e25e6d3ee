"""The best multiples of a kernel machine's model, and its best intercept alone, as in
:mod:`saddlesvm.problem.rescaling`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from saddlesvm.kernel.kernel_certificate import half_norm
from saddlesvm.kernel.kernel_problem import KernelProblem
from saddlesvm.problem.certificate import KernelPoint
from saddlesvm.problem.rescaling import ANY, Candidate, candidates, multiple


@candidates.register(KernelProblem)
def multiples_of_kernel_models(problem: KernelProblem, model: Any) -> Iterator[Candidate]:
    """Multiples that stay inside the bounds of the dual; none where its sums are given, which only the model has."""
    if any(side.intercept.total for side in problem.sides):
        return
    nothing, terms, kind = np.zeros(problem.n), problem.terms, problem.intercept
    alone = kind.best(terms, problem.members, nothing, 0.0)
    yield multiple(problem, terms, nothing, lambda t: 0.0, alone)[2], KernelPoint(nothing)
    half = 0.0 if model is None else half_norm(model.coef, model.margins)
    if half > 0.0:  # where a kernel is indefinite, a ray may have no lowest point
        offset, within = model.intercept if kind.constrained else 0.0, factors(problem, model.coef)
        factor, _, value = multiple(problem, terms, model.margins, lambda t: t * t * half, offset, within)
        yield value, KernelPoint(factor * model.coef, nothing)


def factors(problem: KernelProblem, beta: np.ndarray) -> tuple[float, float]:
    """The factors that keep a model's coefficients in the box of the dual; any where they are not in it."""
    low, high = problem.box()
    if ((beta < low) | (beta > high)).any():
        return ANY
    end = np.where(beta > 0.0, high, low)
    return 0.0, float(np.divide(end, beta, out=np.full(beta.size, np.inf), where=beta != 0.0).min())
