"""Proven bounds for a linear model: bounds on the exact optimum's scores and weights, and labels that are its.

Weights that are exactly zero at the optimum follow from the slack of the dual problem. With the penalty ``square w^2 /
2 + l1 |w|`` a weight is zero where its pull ``v_j = C sum_i a_i x_ij`` at the dual optimum is below l1. A loss whose
curvature is at most B makes the dual strongly concave: the optimal multipliers are in ``C sum_i (a*_i - a_i)^2 / (2 s_i
B) <= g``, so that by the inequality of Cauchy and Schwarz

    |v*_j - v_j|  <=  sqrt(2 g C B sum_i s_i x_ij^2).

Source: Ndiaye, Fercoq, Gramfort and Salmon (2017), "Gap safe screening rules for sparsity enforcing penalties".

Bounds on the optima for every C around the C of a fit: stretches of C with a line of centers and a radius.

``rho = C / C_k``; R is half a square of what the penalty sees, w the weights of the fit at ``C_k``, r its gradient and
H its curvature. The narrowest of these holds for every C of a stretch.

*   Any loss. Sub-gradients of a convex function are monotone, so for the exact optima ``w*`` at ``C_k`` and ``v`` at C
    ``(v - rho w*) . (v - w*) <= 0``: v is in the ball around ``(1 + rho) w* / 2`` of radius ``|1 - rho| ||w*|| / 2``.
*   Losses that are parabolas between corners: with the rows S that stay on one in that ball, the gradient at C is
    ``(1 - rho) w + rho r``, and the curvature at least ``min(1, rho) H_S``.
*   ``|phi'''| <= M phi''``. One Newton step leads along ``h = H^-1 w`` to ``w + tau h`` with ``tau = 1 - 1 / rho``. The
    gradient there is ``rho r - (1 - rho)^2 / rho h + rho rest``, with ``||rest|| <= |tau| ||h|| (e^t - 1 - t) / t`` and
    ``t = M max_i |tau x_i . h|``, and the curvature at least ``e^-t min(1, rho) H``.

All of it grows with the distance of rho from 1, so that the ends of a stretch decide.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from saddlesvm.answers.active_set import has_margin, verified
from saddlesvm.answers.gradient import Gradient, gradient_at, margin_slips, on_one_piece
from saddlesvm.answers.labels import JointNeighbourhood, Labels, Rule, joint_neighbourhood, labels_between
from saddlesvm.answers.neighbourhood import (
    ROUNDS,
    Curvature,
    Neighbourhood,
    curvature_of,
    gap_in_C_form,
    neighbourhood_of,
    radius_by_steepening,
)
from saddlesvm.answers.steps import SPARE, can_come_nearer, neighbourhood_near
from saddlesvm.multiclass.splits import each_class
from saddlesvm.problem.bounds import MARGIN_UNITS, SLACK, UNDERFLOW, gamma, norm_of, radii
from saddlesvm.problem.certificate import Certificate
from saddlesvm.problem.crammer_singer import JointProblem
from saddlesvm.problem.loss import is_smooth
from saddlesvm.problem.penalties import parts_of
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.short_sums import pulled_by_short_sums
from saddlesvm.problem.sums import margins
from saddlesvm.rows.layouts import add_rows, as_rows
from saddlesvm.rows.passes import squared_norms
from saddlesvm.rows.scores import scores_of_rows
from saddlesvm.solvers.second_order.kernels import hessian_diagonal


def certain_zeros(problem: Problem, alpha: np.ndarray, gap: float) -> np.ndarray:
    """The features whose weight is zero at the optimum, shape (d,).

    Parameters
    ----------
    problem : Problem
    alpha : ndarray of shape (n_all,)
        A feasible dual point.
    gap : float
        Its gap, in the C form.
    """
    parts, bend = parts_of(problem.penalty), problem.loss.largest_curvature()
    if parts is None or parts[1] == 0.0 or not (math.isfinite(bend) and gap >= 0.0):
        return np.zeros(problem.n_features, dtype=bool)
    near = pulled_by_short_sums(problem, alpha)
    squares = np.zeros(problem.n_features + 1)
    weights = problem.row_weights
    hessian_diagonal(problem.X, problem.members, weights, squares)
    reach = SLACK * np.sqrt(2.0 * gap * problem.C * bend * squares) + near.errors
    return np.asarray((np.abs(near.pull) + reach < parts[1])[:-1])


@dataclass(frozen=True, eq=False)
class Proof:
    """Bounds on the optimum of each sub-problem of a model.

    Attributes
    ----------
    parts : list of Neighbourhood
        One for each row of ``coef_``.
    zeros : ndarray of shape (len(parts), d)
        Weights that are zero at the optimum, by the dual problem's slack.
    joint : JointNeighbourhood or None
        Of a machine in which all classes share one problem.
    """

    parts: list[Neighbourhood]
    zeros: np.ndarray
    joint: JointNeighbourhood | None = None

    def score_bounds(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Between what the optimum's scores lie, each of shape (m, len(parts))."""
        low, high = zip(*(part.score_bounds(X) for part in self.parts), strict=True)
        return np.column_stack(low), np.column_stack(high)

    def labels(self, X: Any, n_classes: int, rule: Rule = "largest") -> Labels:
        """The labels of some rows by their scores, and whether they are the optimum's.

        Parameters
        ----------
        X : ndarray or CSR matrix of shape (m, d)
        n_classes : int
        rule : {"largest", "votes", "each"}
            See :func:`~saddlesvm.answers.labels.labels_between`.
        """
        if self.joint is not None and len(self.parts) > 1:
            return self.joint.labels(X)
        return labels_between(*self.score_bounds(X), n_classes, rule)

    def weight_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Between what the optimum's weights lie, each of shape (len(parts), d + 1), the intercept last."""
        low, high = map(np.array, zip(*(part.weight_bounds() for part in self.parts), strict=True))
        low[:, :-1][self.zeros] = high[:, :-1][self.zeros] = 0.0
        return low, high


def proof_of(
    problems: Sequence[Problem],
    W: np.ndarray,
    certificates: Sequence[Certificate],
    duals: Sequence[np.ndarray | None],
    enough: float = 0.0,
) -> Proof:
    """The proof of a model by its sub-problems.

    Parameters
    ----------
    problems : sequence of Problem
    W : ndarray of shape (k, d + 1)
        The model's weights; intercepts are divided by the virtual feature.
    certificates : sequence of Certificate
        One a problem.
    duals : sequence of ndarray of shape (n_all,), or None
        The dual points behind the certificates, in the C form, where they are known.
    enough : float, default=0.0
        No active set is verified where no score of a training row moves by more in the ball of the gap.
    """
    first, gaps = problems[0], [gap_in_C_form(one, own.gap) for one, own in zip(problems, certificates, strict=True)]
    zeros = np.zeros((len(W), W.shape[1] - 1), dtype=bool)
    if isinstance(first, JointProblem):
        joint = joint_neighbourhood(first, each_class(W), gaps[0])
        return Proof(joint.parts(), zeros, joint)
    for k, (problem, gap, own) in enumerate(zip(problems, gaps, duals, strict=True)):
        if own is not None:
            zeros[k] = certain_zeros(problem, own / problem.C, gap)
    return Proof([_part(*given, enough) for given in zip(problems, W, gaps, duals, strict=True)], zeros)


def _part(problem: Problem, w: np.ndarray, gap: float, own: np.ndarray | None, enough: float) -> Neighbourhood:
    """The neighbourhood of one problem's optimum: by its active set, where that is verified and the ball of the gap is
    not narrow enough."""
    found = neighbourhood_of(problem, w, gap)
    if own is None or not has_margin(problem) or found.radius * problem.row_sizes.longest <= enough:
        return found
    closer = verified(problem, own / problem.C)
    return closer if closer is not None and closer.radius < found.radius else found


def proof_near(problems: Sequence[Problem], W: np.ndarray, enough: float) -> Proof | None:
    """The proof by a few steps from a model's weights; None where these do not come near the optimum.

    Parameters
    ----------
    problems : sequence of Problem
    W : ndarray of shape (k, d + 1)
        The model's weights; intercepts are divided by the virtual feature.
    enough : float
        How far, at most, the scores of the training rows may move.
    """
    if isinstance(problems[0], JointProblem) or not all(map(can_come_nearer, problems)):
        return None
    parts = [neighbourhood_near(*given, enough) for given in zip(problems, W, strict=True)]
    return None if None in parts else Proof([one for one in parts if one], np.zeros((len(W), W.shape[1] - 1), bool))


def gap_for(problems: Sequence[Problem], certificates: Sequence[Certificate], enough: float) -> float:
    """The relative gap whose ball moves no score of a training row by more than `enough`, where the ball of the gap is
    all that is proven of the problems; zero for others."""
    found = math.inf
    for problem, own in zip(problems, certificates, strict=True):
        seen = problem.penalty.identity() and not problem.intercept.constrained and problem.holds_rows
        if is_smooth(problem.loss) or not seen or isinstance(problem, JointProblem):
            return 0.0
        gap, size = 0.5 * SPARE * (enough / problem.row_sizes.longest) ** 2, max(abs(own.primal), abs(own.dual))
        found = min(found, gap * problem.unit / size if size > 0.0 else math.inf)
    return found


@dataclass(frozen=True, eq=False)
class Stretch:
    """The optima of all C between a fit's and another are near ``center + tau direction``, tau between 0 and `end`.

    Attributes
    ----------
    center, direction : ndarray of shape (d + 1,)
    end : float
    radius : float
        In the norm of `curvature`.
    curvature : Curvature
    scale : float
        Value of the virtual feature.
    """

    center: np.ndarray
    direction: np.ndarray
    end: float
    radius: float
    curvature: Curvature
    scale: float

    def score_bounds(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Between what the scores of rows lie for every C of the stretch, each of shape (m,)."""
        rows = as_rows(X, self.scale)
        both = np.vstack([self.center, self.center + self.end * self.direction])
        z = scores_of_rows(rows, both)
        if not math.isfinite(self.radius):
            return np.full(len(z), -np.inf), np.full(len(z), np.inf)
        norms = radii(squared_norms(rows))
        slips = 2.0 * gamma(rows.longest_row + 1.0 + MARGIN_UNITS) * max(map(norm_of, both)) * norms + UNDERFLOW
        away = SLACK * (self.curvature.row_norms(rows) * self.radius + slips)
        return z.min(axis=1) - away, z.max(axis=1) + away


def stretch_to(problem: Problem, near: Neighbourhood, C: float) -> Stretch:
    """The stretch from a problem's C to another.

    Parameters
    ----------
    problem : Problem
        With half a square as its penalty.
    near : Neighbourhood
        Of the problem's optimum.
    C : float
    """
    rho = C / problem.C
    plain = _by_monotony(problem, near, rho)
    if near.way != "curvature" or not math.isfinite(plain.radius):
        return plain
    found = gradient_at(problem, near.center)
    if hasattr(problem.loss, "steepening"):
        return _by_step(problem, near, found, rho) or plain
    return _by_corners(problem, near, found, plain, rho)


def _seen(problem: Problem, w: np.ndarray) -> np.ndarray:
    """w where the penalty sees it, shape (d + 1,)."""
    seen = np.zeros(w.size)
    part = problem.intercept.penalised(w)
    seen[: part.size] = part
    return seen


def _by_monotony(problem: Problem, near: Neighbourhood, rho: float) -> Stretch:
    """The ball of any loss; nothing of a free intercept."""
    w, floor = near.center, near.curvature.floor
    known = problem.penalty.identity() and not problem.intercept.constrained and floor > 0.0
    off = SLACK * near.radius / math.sqrt(floor) if known and near.radius > 0.0 else 0.0
    radius = 0.5 * abs(1.0 - rho) * (norm_of(w) + off) + 0.5 * (1.0 + rho) * off if known else math.inf
    return Stretch(w, w, 0.5 * (rho - 1.0), SLACK * radius, Curvature(None, 1.0), problem.scale)


def _by_corners(problem: Problem, near: Neighbourhood, found: Gradient, plain: Stretch, rho: float) -> Stretch:
    """The ball in the norm of the rows that stay on one parabola for all C of the stretch; a narrower one has more."""
    norms, corners = radii(problem.gathered(problem.norms)), problem.loss.corners()  # type: ignore[attr-defined]
    seen, still, before, nearest = _seen(problem, near.center), np.zeros(near.center.size), 0, plain
    for _ in range(ROUNDS):
        away = SLACK * nearest.radius * norms + 2.0 * found.slips
        moved = nearest.end * found.z if before == 0 else 0.0 * found.z
        low, high = found.z + np.minimum(moved, 0.0) - away, found.z + np.maximum(moved, 0.0) + away
        chosen = np.flatnonzero((found.bends > 0.0) & on_one_piece(problem, low, high, corners))
        if chosen.size <= before:
            break
        curvature = curvature_of(problem, problem.members[chosen], found.bends[chosen] / SLACK)
        if curvature.factor is None:
            break
        size = curvature.dual_norm(seen) * abs(1.0 - rho)
        size += max(1.0, rho) * curvature.dual_norm(found.value, found.error)
        before, radius = chosen.size, SLACK * size / min(1.0, rho)
        nearest = Stretch(near.center, still, 0.0, radius, curvature, problem.scale)
    return nearest


def _by_step(problem: Problem, near: Neighbourhood, found: Gradient, rho: float) -> Stretch | None:
    """The ball around one Newton step, of losses whose curvature changes no faster than an exponential; None where that
    is not enough."""
    M, curvature = problem.loss.steepening(), near.curvature  # type: ignore[attr-defined]
    seen, tau = _seen(problem, near.center), 1.0 - 1.0 / rho
    h = curvature.solved(seen)
    if not problem.intercept.present:
        h[-1] = 0.0
    along = margins(problem, h)
    bent = np.zeros(h.size)
    add_rows(problem.X, problem.members, problem.spread(found.bends * along), bent)
    bent += _seen(problem, h)
    slips = gamma(problem.members.size + 2.0 * problem.row_sizes.terms + MARGIN_UNITS)
    lost = slips * (norm_of(h) * (1.0 + float(found.bends @ problem.gathered(problem.norms))))
    length = math.sqrt(max(float(h @ bent), 0.0)) + lost
    t = SLACK * M * abs(tau) * float((np.abs(along) + margin_slips(problem, h)).max(initial=0.0))
    if t > 1.0:
        return None
    rest = abs(tau) * length * (t / 2.0) * (1.0 + t)  # (e^t - 1 - t) / t is less for t up to 1
    size = max(1.0, rho) * (curvature.dual_norm(found.value, found.error) + rest)
    size += (1.0 - rho) ** 2 / rho * curvature.dual_norm(_seen(problem, h))
    size += abs(1.0 - rho) * curvature.dual_norm(bent - seen, lost)
    less = math.exp(-t) * min(1.0, rho)
    longest = SLACK * float(radii(problem.norms).max(initial=0.0)) / math.sqrt(curvature.floor)
    if M * longest * size / less > 0.5:
        longest = float(curvature.row_norms(problem.X, problem.members).max(initial=0.0))
    radius = radius_by_steepening(SLACK * size / less, SLACK * M * longest)
    return Stretch(near.center, h, tau, radius, curvature, problem.scale) if math.isfinite(radius) else None
