"""Dual coordinate descent for several two-class problems over the same rows: each row is loaded for all of them.

The steps and the shrinking are those of :mod:`saddlesvm.solvers.dcd`, a column of dual variables a problem; rows are
set aside sooner, as nothing rests on it. A row keeps the list of the problems that still work on it, and leaves when
that is empty. What is set aside still counts in the objective that a problem's estimate is relative to. What comes out
is where the fit of each problem on its own begins, and mostly ends at once: this module proves nothing.

Source: Hsieh and others (2008), algorithm 3, for the steps; the sharing of rows between the classes is that of Keerthi
and others (2008).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from saddlesvm.problem.losses import conjugate, dual_step, slopes, value
from saddlesvm.problem.problem import Problem, Terms, weight_of
from saddlesvm.rows.class_rows import add_row, dots, new_weights
from saddlesvm.rows.layouts import dtype_of, look_ahead
from saddlesvm.runtime.compiled import allocating_kernel
from saddlesvm.runtime.randomness import seeded, shuffle

# Places of the running figures of a problem's pass, and of what is kept from one pass to the next.
LARGEST, SMALLEST, RESIDUAL, PAID, COUPLED, ESTIMATE, BOUND_M, BOUND_m, ASIDE = range(9)
READY = 0.5  # of the gap asked for, at which a problem's estimate ends its work here
RECHECK = 0.003  # of the last estimate over all rows: once the active ones are below it, the others are looked at again
EAGER = 0.2  # of the largest slope of a pass, beyond which a row at its bound is set aside in the next
PASSES = 1000  # at most
SLICE_SCORES = 200_000  # scores between two looks at the clock


@allocating_kernel
def descend(
    terms: Terms,
    labels: np.ndarray,
    order: np.ndarray,
    random: np.ndarray,
    alpha: np.ndarray,
    W: np.ndarray,
    problems: np.ndarray,
    counts: np.ndarray,
    finished: np.ndarray,
    position: int,
    active: int,
    most: int,
    meters: np.ndarray,
) -> Any:
    """Visit rows until the pass ends or about `most` scores are computed: place, active rows, scores, passes ended."""
    z = np.empty(labels.shape[1], dtype=W.dtype)
    if position == 0:
        shuffle(random, order, active)
        for k in range(meters.shape[0]):
            meters[k, LARGEST], meters[k, SMALLEST] = -np.inf, np.inf
            meters[k, RESIDUAL] = meters[k, PAID] = meters[k, COUPLED] = 0.0
    done = 0
    while position < active and done < most:
        look_ahead(terms.X, order, position, active, counts, terms.norms, terms.norms)
        i = order[position]
        s, mine, count = weight_of(terms.weights, i), problems[i], counts[i]
        q = 0
        while q < count:
            k = mine[q]
            if finished[k]:
                count -= 1
                mine[q], mine[count] = mine[count], k
            else:
                q += 1
        dots(terms.X, i, W, mine, count, z)
        done += max(count, 1)
        q = 0
        while q < count:
            k = mine[q]
            a, y, figures = alpha[i, k], np.float64(labels[i, k]), meters[k]
            score = np.float64(z[k])
            left, right = slopes(terms.loss, a, score, y, s)
            paid = s * value(terms.loss, score, y)
            if right > figures[BOUND_M] and left < figures[BOUND_m]:
                count -= 1
                mine[q], mine[count] = mine[count], k
                figures[ASIDE] += paid + 0.5 * a * score
                continue
            projected = right if right < 0.0 else (left if left > 0.0 else 0.0)
            figures[LARGEST] = max(figures[LARGEST], projected)
            figures[SMALLEST] = min(figures[SMALLEST], projected)
            figures[RESIDUAL] += paid + conjugate(terms.loss, a, y, s) + a * score
            figures[PAID] += paid
            figures[COUPLED] += a * score
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
    for k in range(meters.shape[0]):
        if not finished[k]:
            figures = meters[k]
            objective = figures[PAID] + 0.5 * figures[COUPLED] + figures[ASIDE]
            figures[ESTIMATE] = figures[RESIDUAL] / max(objective, 1e-300)
            figures[BOUND_M] = figures[LARGEST] if figures[LARGEST] > 0.0 else np.inf
            figures[BOUND_m] = figures[SMALLEST] if figures[SMALLEST] < 0.0 else -np.inf
    return 0, active, done, 1


@dataclass
class Block:
    """The run of several problems at once.

    Attributes
    ----------
    problem : Problem
        Any one of them: its rows, weights, C and loss are those of all.
    labels : ndarray of shape (n_all, B), int8
        -1 and +1, a column a problem.
    alpha : ndarray of shape (n_all, B)
        What they have come to.
    """

    problem: Problem
    labels: np.ndarray
    alpha: np.ndarray

    def run(self, tol: float, seed: int, stop: Callable[[], bool], most: float = np.inf) -> tuple[float, np.ndarray]:
        """Descend until each problem's own estimate of its relative gap is below `tol`, for at most so many epochs.

        Returns
        -------
        epochs : float
            Scores computed, by rows times problems.
        estimates : ndarray of shape (B,)
            Each problem's own.
        """
        problem, (n_all, B) = self.problem, self.labels.shape
        W = new_weights(problem.X, B, dtype_of(problem.X))
        order, random, meters = problem.members.copy(), seeded(seed), np.zeros((B, 9))
        meters[:, ESTIMATE] = np.inf
        problems = np.empty((n_all, B), dtype=np.int16)
        problems[:] = np.arange(B)
        counts = np.full(n_all, B, dtype=np.int32)
        meters[:, BOUND_M], meters[:, BOUND_m] = np.inf, -np.inf
        finished = np.zeros(B, dtype=np.bool_)
        position, active, whole, known, passes, scored = 0, order.size, True, np.inf, 0, 0
        visits = order.size * B
        while passes < PASSES and not finished.all() and scored < most * visits and not stop():
            position, active, done, ended = descend(
                problem.terms, self.labels, order, random, self.alpha, W, problems, counts, finished,
                position, active, SLICE_SCORES, meters,
            )  # fmt: skip
            scored += done
            if not ended:
                continue
            passes += 1
            meters[:, [BOUND_M, BOUND_m]] *= EAGER
            finished |= meters[:, ESTIMATE] <= READY * tol
            estimate = float(meters[~finished, ESTIMATE].max(initial=0.0))
            if whole:
                known, whole = estimate, False
            elif estimate <= RECHECK * known or active == 0:
                active, whole, counts[:] = order.size, True, B
                meters[:, BOUND_M], meters[:, BOUND_m], meters[:, ASIDE] = np.inf, -np.inf, 0.0
        return scored / visits, meters[:, ESTIMATE].copy()


def stops(event: threading.Event, seconds: float | None) -> Callable[[], bool]:
    """A question to ask between slices: has somebody interrupted, or is the time up?"""
    end = np.inf if seconds is None else time.perf_counter() + seconds
    return lambda: event.is_set() or time.perf_counter() >= end
