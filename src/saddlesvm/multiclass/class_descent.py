"""Dual coordinate descent for several two-class problems over the same rows: each row is loaded for all of them.

The steps and the shrinking are those of :mod:`saddlesvm.solvers.dcd`, one column of dual variables per problem. The
kernel sets rows aside sooner, because the fit of each problem corrects a wrong guess. A row keeps the list of the
problems that still work on it, and leaves when the list is empty. Rows set aside still count in the objective that a
problem's estimate is relative to. This module proves nothing: the fit of each problem alone begins at the point that
the kernel reaches, and mostly ends there at once.

Source: Hsieh and others (2008), algorithm 3, for the steps; the sharing of rows between the classes is that of Keerthi
and others (2008).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from saddlesvm.problem.certificate import Point
from saddlesvm.problem.loss import conjugate, dual_step, slopes, value
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.terms import Terms, weight_of
from saddlesvm.rows.class_rows import add_row, dots
from saddlesvm.rows.prefetch import prefetch_next
from saddlesvm.runtime.clock import clock
from saddlesvm.runtime.compiled import allocating_kernel, inlined, record_of
from saddlesvm.runtime.randomness import make_random, shuffle
from saddlesvm.solvers.base import Place
from saddlesvm.solvers.dcd import projected

# The running figures of a problem's pass, and the figures that it keeps for the next pass.
METERS = record_of("largest", "smallest", "residual", "paid", "coupled", "estimate", "bound_M", "bound_m", "aside")
READY = 0.5  # share of the gap asked for: a problem whose estimate is below it is finished here
RECHECK = 0.003  # share of the last estimate over all rows: once the active rows' is below it, all rows come back
EAGER = 0.2  # share of the largest slope of a pass beyond which the next pass sets a row at its bound aside
PASSES = 1000  # passes at most
SLICE_SCORES = 200_000  # scores computed between two looks at the clock


class Lists(NamedTuple):
    """The rows of a run in their order, and the problems that still work on each row.

    Attributes
    ----------
    labels : ndarray of shape (n_all, B), int8
    order : ndarray of shape (n,)
        Active rows first.
    random : ndarray of shape (1,), uint64
    problems : ndarray of shape (n_all, B)
        The numbers of the problems in each row's own order: those that still work on it first.
    counts : ndarray of shape (n_all,)
        How many problems still work on each row.
    finished : ndarray of shape (B,)
        Which problems are done.
    factors : ndarray of shape (B,)
        What the weights of the rows that each problem labels +1 are multiplied by.
    """

    labels: np.ndarray
    order: np.ndarray
    random: np.ndarray
    problems: np.ndarray
    counts: np.ndarray
    finished: np.ndarray
    factors: np.ndarray


@inlined
def without_finished(mine: np.ndarray, count: int, finished: np.ndarray) -> int:
    """Move finished problems behind the others of a row; return how many are left."""
    q = 0
    while q < count:
        k = mine[q]
        if finished[k]:
            count -= 1
            mine[q], mine[count] = mine[count], k
        else:
            q += 1
    return count


@inlined
def begin_pass(meters: np.ndarray) -> None:
    """Empty the running figures."""
    for k in range(meters.size):
        m = meters[k]
        m.largest, m.smallest = -np.inf, np.inf
        m.residual = m.paid = m.coupled = 0.0


@inlined
def end_of_pass(meters: np.ndarray, finished: np.ndarray) -> None:
    """Turn the figures of a pass into estimates and bounds."""
    for k in range(meters.size):
        if not finished[k]:
            m = meters[k]
            objective = m.paid + 0.5 * m.coupled + m.aside
            m.estimate = m.residual / max(objective, 1e-300)
            m.bound_M = m.largest if m.largest > 0.0 else np.inf
            m.bound_m = m.smallest if m.smallest < 0.0 else -np.inf


@allocating_kernel
def descend_classes(
    terms: Terms, lists: Lists, alpha: np.ndarray, W: np.ndarray, place: Place, most: int, meters: np.ndarray
) -> Any:
    """Visit rows until the pass ends or about `most` scores are computed.

    Returns the position in the pass, the active rows, the scores computed, and the passes that ended (0 or 1).
    """
    labels, order, random, problems, counts, finished, factors = lists
    position, active = place
    z = np.empty(labels.shape[1], dtype=W.dtype)
    if position == 0:
        shuffle(random, order, active)
        begin_pass(meters)
    done = 0
    while position < active and done < most:
        prefetch_next(terms.X, order, position, active, counts, terms.norms, terms.norms)
        i = order[position]
        weight, mine = weight_of(terms.weights, i), problems[i]
        count = without_finished(mine, counts[i], finished)
        dots(terms.X, i, W, mine, count, z)
        done += max(count, 1)
        q = 0
        while q < count:
            k = mine[q]
            a, y, m = alpha[i, k], np.float64(labels[i, k]), meters[k]
            score = np.float64(z[k])
            s = weight * factors[k] if y > 0.0 else weight
            paid = s * value(terms.loss, score, y)
            left, right = slopes(terms.loss, a, score, y, s)
            if right > m.bound_M and left < m.bound_m:
                count -= 1
                mine[q], mine[count] = mine[count], k
                m.aside += paid + 0.5 * a * score
                continue
            slope = projected(left, right)
            m.largest, m.smallest = max(m.largest, slope), min(m.smallest, slope)
            m.residual += paid + conjugate(terms.loss, a, y, s) + a * score
            m.paid += paid
            m.coupled += a * score
            step = dual_step(terms.loss, a, score, y, terms.C * terms.norms[i], s)
            if step != 0.0:
                alpha[i, k] = a + step
                add_row(terms.X, i, terms.C * step, W, k)
            q += 1
        counts[i] = count
        if count == 0:
            active -= 1
            order[position], order[active] = order[active], i
        else:
            position += 1
    if position < active:
        return position, active, done, 0
    end_of_pass(meters, finished)
    return 0, active, done, 1


@dataclass
class ClassRun:
    """The run of several problems at once.

    Attributes
    ----------
    problem : Problem
        Any one of them, without a factor of its class: its rows, weights, C and loss are those of all.
    labels : ndarray of shape (n_all, B), int8
        -1 and +1, one column per problem.
    alpha : ndarray of shape (n_all, B)
        Dual variables that the problems have reached.
    factors : ndarray of shape (B,)
        What the weights of the rows that each problem labels +1 are multiplied by.
    """

    problem: Problem
    labels: np.ndarray
    alpha: np.ndarray
    factors: np.ndarray

    def run(self, tol: float, seed: int, stop: Callable[[], bool], most: float = np.inf) -> tuple[float, np.ndarray]:
        """Work until each problem's own estimate of its relative gap is below `tol`, for about `most` epochs.

        Returns
        -------
        epochs : float
            Passes over the rows, or scores computed by rows times problems.
        estimates : ndarray of shape (B,)
            Each problem's own.
        """
        raise NotImplementedError

    def point(self, column: int) -> Point:
        """The dual variables that a problem has reached."""
        return Point(alpha=self.alpha[:, column].copy())


class ClassDescent(ClassRun):
    """Coordinate descent; problems whose estimate is low enough leave."""

    def run(self, tol: float, seed: int, stop: Callable[[], bool], most: float = np.inf) -> tuple[float, np.ndarray]:
        """Descend; the epochs count scores, by rows times problems."""
        problem, (n_all, B) = self.problem, self.labels.shape
        W = np.zeros(problem.X.weights_shape(B), problem.dtype)
        order, random, meters = problem.members.copy(), make_random(seed), np.zeros(B, METERS)
        meters["estimate"] = np.inf
        problems = np.empty((n_all, B), dtype=np.int16)
        problems[:] = np.arange(B)
        counts = np.full(n_all, B, dtype=np.int32)
        meters["bound_M"], meters["bound_m"] = np.inf, -np.inf
        finished = np.zeros(B, dtype=np.bool_)
        lists = Lists(self.labels, order, random, problems, counts, finished, self.factors)
        place, whole, known, passes, scored = Place(0, order.size), True, np.inf, 0, 0
        visits = order.size * B
        while passes < PASSES and not finished.all() and scored < most * visits and not stop():
            position, active, done, ended = descend_classes(
                problem.terms, lists, self.alpha, W, place, SLICE_SCORES, meters
            )
            place = Place(position, active)
            scored += done
            if not ended:
                continue
            passes += 1
            meters["bound_M"] *= EAGER
            meters["bound_m"] *= EAGER
            finished |= meters["estimate"] <= READY * tol
            estimate = float(meters["estimate"][~finished].max(initial=0.0))
            if whole:
                known, whole = estimate, False
            elif estimate <= RECHECK * known or active == 0:
                place, whole, counts[:] = Place(0, order.size), True, B
                meters["bound_M"], meters["bound_m"], meters["aside"] = np.inf, -np.inf, 0.0
        return scored / visits, meters["estimate"].copy()


def stops(event: threading.Event, seconds: float | None) -> Callable[[], bool]:
    """A function to call between slices: it returns whether the run was interrupted or its time is up."""
    end = np.inf if seconds is None else clock() + seconds
    return lambda: event.is_set() or clock() >= end
