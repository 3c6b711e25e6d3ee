"""The one loop that drives any solver: work, certificates, callbacks, checkpoints, and how it ends.

What decides between the steps is in :mod:`saddlesvm.fit.run`.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from saddlesvm.fit.checkpoint import Checkpoint
from saddlesvm.fit.limits import Limits
from saddlesvm.fit.outcome import Outcome
from saddlesvm.fit.result import FitResult
from saddlesvm.fit.run import Run, proof
from saddlesvm.fit.trace import Callback
from saddlesvm.problem.certificate import Certificate, Evaluation, Point
from saddlesvm.problem.fingerprint import fingerprint
from saddlesvm.problem.problem import Problem
from saddlesvm.runtime.interrupt import interruptible


def fit(
    problem: Problem,
    solver: Any,
    limits: Limits = Limits(),
    *,
    seed: int = 0,
    start: Point | None = None,
    callbacks: Sequence[Callback] = (),
    checkpoint: Checkpoint | None = None,
    stop: threading.Event | None = None,
    label: str = "",
) -> FitResult:
    """Drive `solver` on `problem` until its relative gap is proven to be at most ``limits.tol``, or a limit is reached.

    Parameters
    ----------
    problem : Problem
    solver : Solver
    limits : Limits
    seed : int
        Of the run's own generator.
    start : Point, optional
        Where to begin.
    callbacks : sequence of callables
        Each is called with a :class:`~saddlesvm.fit.trace.Record` of every certificate; True asks to stop. One
        that has a method ``tick(epoch, estimate, seconds)`` is also told of every slice of work.
    checkpoint : Checkpoint, optional
        Continued from if its file exists; written every so often, and at the end.
    stop : threading.Event, optional
        Set from outside to interrupt the fit. Without it Ctrl-C does so.
    label : str
        Name of the sub-problem in the records.

    Returns
    -------
    FitResult
    """
    run = Run(problem, solver, limits, label)
    state = solver.init(problem, seed, start)
    mark = fingerprint(problem, solver) | checkpoint.marks(problem, seed) if checkpoint else {}
    stored = checkpoint.read(problem, mark, state) if checkpoint else None
    if stored is not None:
        state = stored.state
        run.restore(stored)
    tickers = [callback.tick for callback in callbacks if hasattr(callback, "tick")]
    with interruptible(stop) as interrupted:
        end: tuple[Outcome, str] | None = None
        if limits.certify_start and start is not None and stored is None:
            state, end = _certify(run, state, None, callbacks)
        while end is None:
            state = solver.step(problem, state, run.budget(state))
            run.worked(getattr(state, "phase", solver.name))
            end = run.reason_to_end(state, interrupted.is_set())
            for tick in tickers:
                tick(state.epochs, state.estimate, run.watches.total)
            if end is not None or run.look_due(state):
                state, end = _certify(run, state, end, callbacks)
            if run.best is None and end is not None:
                break
            if checkpoint and (end is not None or checkpoint.due()):
                checkpoint.write(mark, run.saved(state))
    return _result(run, state, end)


def _certify(
    run: Run, state: Any, end: tuple[Outcome, str] | None, callbacks: Sequence[Callback]
) -> tuple[Any, tuple[Outcome, str] | None]:
    """Look, tell the callbacks, and say whether that ends the fit; exact where `end` says that it ends anyway."""
    state = run.look(state, ending=end is not None or state.epochs == 0.0)
    if run.best is None:
        return state, end or (Outcome.FAILED, "no point with a finite objective")
    record = run.record(state)
    asked = [callback(record) for callback in (run.trace, *callbacks)]
    run.watches.skip()
    verdict = run.verdict(state)
    if end is None and verdict is not None and verdict[0] is Outcome.NO_PROGRESS:
        other = run.solver.on_stall(run.problem, state)
        if other is not None:
            state, verdict = other, None
    return state, verdict or end or ((Outcome.INTERRUPTED, "asked by a callback") if any(asked) else None)


def _result(run: Run, state: Any, end: tuple[Outcome, str]) -> FitResult:
    """What the last record told of; zeros with a certificate of NaN where there was none."""
    if run.best is None:
        certificate = Certificate(np.nan, np.nan)
        model = bound = Evaluation(np.zeros(run.problem.n_features), 0.0, np.zeros(run.problem.y.size), certificate)
    else:
        model, bound = run.chosen
        certificate = proof(model, bound)
    return FitResult(
        coef=model.coef,
        intercept=model.intercept,
        alpha=bound.alpha,
        certificate=certificate,
        outcome=end[0],
        tol=run.limits.tol,
        epochs=float(state.epochs),
        rows_touched=int(state.rows_touched),
        seconds_solving=run.watches.solving,
        seconds_certifying=run.watches.certifying,
        trace=run.trace,
        reason=end[1],
        phases=run.phases,
    )
