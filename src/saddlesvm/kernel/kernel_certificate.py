"""The certificate of a point of a kernel problem, with what rounding can have done to it.

Primal and dual are as in :mod:`saddlesvm.kernel.kernel_problem`. ``f = K beta`` is rebuilt
from the support vectors: in float64, or in float32 at rows that are so far outside the margin that
bounds on the errors prove them to pay nothing. Each group of rows gets its best offset. The account
of rounding has three steps: errors of kernel values (:mod:`saddlesvm.kernel.kernel_errors`,
:mod:`saddlesvm.kernel.rough_values`), sums over the rows (:mod:`saddlesvm.kernel.kernel_sums`), and
the four numbers of a certificate (:mod:`saddlesvm.problem.bounds`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from saddlesvm.kernel.kernel_problem import KernelProblem
from saddlesvm.kernel.kernel_sums import (
    COMMON,
    PLACES,
    JudgedRows,
    best_offsets,
    boxed_loss,
    certificate_of_sums,
    certificate_sums,
    half_square,
)
from saddlesvm.kernel.mercer import expand
from saddlesvm.kernel.rough_values import rough_expansion
from saddlesvm.problem.bounds import UNIT, Bounded
from saddlesvm.problem.certificate import Evaluation, KernelPoint, evaluate
from saddlesvm.problem.loss import methods_of
from saddlesvm.problem.problem import is_classification
from saddlesvm.problem.terms import Pointwise
from saddlesvm.problem.without_loss import BEYOND_MARGIN, find_without_loss

FIRST = np.zeros(1, dtype=np.int64)  # the number of the only problem


@dataclass(frozen=True)
class KernelEvaluation(Evaluation):
    """A certified model: `coef` holds beta, `margins` ``K beta`` without an intercept.

    `intercept` is an array of shape (groups,) if the problem has groups.
    """

    margins: np.ndarray


def evaluate_kernel(
    problem: KernelProblem, point: KernelPoint, *, exact: bool = True
) -> KernelEvaluation:
    """Certify a point.

    Parameters
    ----------
    problem : KernelProblem
    point : KernelPoint
    exact : bool, default=True
        Makes no difference: there is no cheaper certificate than the exact certificate.
    """
    beta = point.beta
    # Most points are dual feasible: model and dual point are then the same function.
    if point.dual is None or np.array_equal(point.dual, beta):
        both = (beta, expansion_of(problem, beta, point.offsets))
        return certify_values(problem, both, both, point.offsets)
    # Else each kernel value is computed once, for both.
    f, dual_f = problem.margins(np.column_stack([beta, point.dual])).T
    model = function_of(problem, beta, np.ascontiguousarray(f))
    dual = function_of(problem, point.dual, dual_f)
    return certify_values(problem, (beta, model), (point.dual, dual), point.offsets)


def certify_values(
    problem: KernelProblem,
    model: tuple[np.ndarray, FeatureFunction],
    dual: tuple[np.ndarray, FeatureFunction],
    given: np.ndarray | None = None,
) -> KernelEvaluation:
    """Return the certificate of a model and a feasible dual point, known by their values.

    Parameters
    ----------
    problem : KernelProblem
    model, dual : pair of ndarray of shape (n,) and FeatureFunction
        The coefficients, and their function.
    given : ndarray of shape (groups,), optional
        Offsets to judge; by default the best offsets.
    """
    beta, function = model
    feasible, dual_function = dual
    offsets = given
    if offsets is None:
        offsets = find_offsets(problem, function.values)
    # The sums over the rows, group by group.
    alpha = alpha_of(problem, feasible)
    judged = judged_rows(problem)
    order = problem.group_order
    point = (function.values[order], function.slips[order], feasible[order], alpha[order])
    numbers = np.empty((1, COMMON + PLACES * len(problem.all_groups)))
    certificate_sums(judged, boxed_loss(problem.loss), FIRST, point, offsets[None, :], numbers)
    # The dual variables of a group with a free intercept have a given sum.
    totals: list[float] = []
    if problem.intercept.constrained:
        totals = judged.totals[0].tolist()
    halves = (function.half, dual_function.half)
    certificate = certificate_of_sums(
        problem.loss, problem.strength, totals, numbers[0].tolist(), halves
    )
    intercepts: Any = offsets if problem.groups else float(offsets[0])
    return KernelEvaluation(beta, intercepts, alpha, certificate, function.values)


def find_offsets(problem: KernelProblem, f: np.ndarray) -> np.ndarray:
    """Return the best offset of each group for the values f of a model at the rows."""
    offsets = np.zeros((1, len(problem.all_groups)))
    if problem.intercept.constrained:
        order = problem.group_order
        best_offsets(judged_rows(problem), boxed_loss(problem.loss), FIRST, f[order], offsets)
    return offsets[0]


def judged_rows(problem: KernelProblem) -> JudgedRows:
    """Return the rows of a problem, group by group, as sums of certificates take them."""
    order = problem.group_order
    totals = [group.intercept.total for group in problem.all_groups]
    ends = np.cumsum([0] + [group.rows.size for group in problem.all_groups])
    lengths = problem.sizes_at_rows(problem.errors.lengths)
    return JudgedRows(
        groups=ends[None, :],
        totals=np.array([totals], dtype=np.float64),
        y=problem.y[order],
        lengths=lengths[order],
        top=problem.bounds[1][order],
        weights=problem.weights[order] if problem.weights.size else problem.weights,
        C=float(problem.C),
    )


class FeatureFunction(NamedTuple):
    """A function of the feature space.

    Attributes
    ----------
    values, slips : ndarray of shape (n_all,)
        At all rows, without the offsets, and bounds on their errors.
    half : Bounded
        Half its squared norm.
    """

    values: np.ndarray
    slips: np.ndarray
    half: Bounded


def may_pay(terms: Pointwise, z: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """Return which rows may pay a loss if their values have such errors.

    Losses are convex: a row that pays nothing at two values pays nothing between them. The errors
    are doubled, because the ends are rounded.
    """
    value = methods_of(terms.loss).value
    with np.errstate(all="ignore"):
        ends = [value(terms.loss, z + way * errors, terms.y) for way in (-2.0, 2.0)]
    return np.asarray((ends[0] != 0.0) | (ends[1] != 0.0))


def expansion_of(
    problem: KernelProblem, beta: np.ndarray, given: np.ndarray | None = None
) -> FeatureFunction:
    """Return ``sum_i beta_i k(x_i, .)``, with float64 values where a certificate needs them.

    With many points, float32 values of most rows are enough: they prove that these pay no loss.

    Parameters
    ----------
    given : ndarray of shape (groups,), optional
        The offsets; by default the best offsets.
    """
    point_coefs = problem.sum_at_points(beta)
    support = np.flatnonzero(point_coefs)
    # float32 values with bounds on their errors; None if float64 is as fast.
    rough = None
    if problem.table is None and not problem.kernel.precomputed:
        rough = rough_expansion(problem.row_source, support, point_coefs[support])
    if rough is None:
        return function_of(problem, beta, problem.margins(beta))
    values, slips = rough
    exact = problem.errors.bound_expansion(point_coefs, UNIT)

    def replace(points: np.ndarray) -> FeatureFunction:
        """Compute the values of some points in float64; return the function."""
        values[points] = expand(
            problem.kernel, problem.X[points], problem.X[support], point_coefs[support]
        )
        slips[points] = exact[points]
        return function_of(problem, beta, problem.values_at_rows(values), slips)

    # float64 values at the support vectors, then at rows that may pay a loss.
    is_exact = np.zeros(values.size, dtype=bool)
    is_exact[support] = True
    is_exact[problem.points_of(np.flatnonzero(beta))] = True
    found = replace(np.flatnonzero(is_exact))
    offsets = find_offsets(problem, found.values) if given is None else given
    z = found.values + offsets[problem.group_of]
    pays = problem.points_of(np.flatnonzero(may_pay(problem.terms, z, found.slips)))
    return replace(np.unique(pays[~is_exact[pays]]))


def function_of(
    problem: KernelProblem, beta: np.ndarray, f: np.ndarray, slips: np.ndarray | None = None
) -> FeatureFunction:
    """Return ``sum_i beta_i k(x_i, .)`` with its values f, and bounds on the errors of both.

    `slips` bound the errors at the points; by default, of values in float64.
    """
    if slips is None:
        slips = problem.errors.bound_expansion(problem.sum_at_points(beta), UNIT)
    slips = problem.sizes_at_rows(slips)
    return FeatureFunction(f, slips, half_square(beta, f, slips))


def alpha_of(problem: KernelProblem, beta: np.ndarray) -> np.ndarray:
    """Return ``a = beta / C`` within its bounds, which rounding may have crossed."""
    return np.clip(beta / problem.C, *problem.bounds)


def nearest_feasible(problem: KernelProblem, beta: np.ndarray) -> np.ndarray:
    """Return `beta` within its box, with the required sum of each group with a free intercept."""
    low, high = problem.box()
    clipped = np.clip(beta, low, high)
    for rows, intercept in problem.all_groups:
        if intercept.constrained:
            alpha = intercept.balance(problem.terms, rows, clipped / problem.C)
            clipped = np.clip(alpha * problem.C, low, high)
    return clipped


evaluate.register(KernelProblem, evaluate_kernel)


@find_without_loss.register(KernelProblem)
def multiple_without_loss(problem: KernelProblem, model: KernelEvaluation) -> KernelPoint | None:
    """Return the multiple of a model whose rows pay no loss.

    None if a row has a score of the wrong sign, or if the dual variables have a given sum.
    """
    has_totals = any(group.intercept.total for group in problem.all_groups)
    if has_totals or not is_classification(problem.loss):
        return None
    offsets = model.intercept if problem.intercept.constrained else 0.0
    scores = model.margins + np.ravel(offsets)[problem.group_of]
    least = float((problem.y * scores).min())
    if not least > 0.0:
        return None
    return KernelPoint(BEYOND_MARGIN / least * model.coef, np.zeros(problem.n))
