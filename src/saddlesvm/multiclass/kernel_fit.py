"""The sub-problems of a kernel machine, each driven by the loop of :mod:`saddlesvm.fit.loop`."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from saddlesvm.fit.limits import Limits
from saddlesvm.fit.loop import fit
from saddlesvm.fit.progress import ProgressBar
from saddlesvm.fit.result import FitResult
from saddlesvm.multiclass.sub_problems import SubProblem, solve_all
from saddlesvm.problem.kernel import make_kernel_problem
from saddlesvm.problem.losses import Loss
from saddlesvm.rows.kernels import Kernel, Matrix
from saddlesvm.solvers import parse_solver
from saddlesvm.solvers.base import SolverBase
from saddlesvm.solvers.kernel.pegasos import KernelPegasos
from saddlesvm.solvers.kernel.sdca import KernelSDCA

KERNEL_SOLVERS: dict[str, type[SolverBase]] = {
    "auto": KernelSDCA,
    KernelSDCA.name: KernelSDCA,
    KernelPegasos.name: KernelPegasos,
}


def make_kernel_solver(solver: str | SolverBase) -> Any:
    """A solver object from its name, or the object itself.

    Raises
    ------
    ValueError
        The name is unknown, or the solver is none for kernels.
    """
    if isinstance(solver, (KernelSDCA, KernelPegasos)):
        return solver
    return parse_solver(solver, KERNEL_SOLVERS)


def fit_kernels(
    X: Matrix,
    kernel: Kernel,
    problems: Sequence[Callable[[], SubProblem]],
    loss: Loss,
    weights: np.ndarray | None,
    solver: SolverBase,
    limits: Limits,
    *,
    options: dict[str, Any],
    seed: int,
    n_jobs: int | None = None,
    callbacks: Sequence[Any] = (),
    bar: ProgressBar | None = None,
) -> list[FitResult]:
    """Fit every sub-problem.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d); the n x n kernel matrix when it is precomputed
    problems : sequence of callables
        Each makes a :class:`~saddlesvm.multiclass.sub_problems.SubProblem`.
    weights : ndarray of shape (n,), optional
    options : dict
        The rest of :func:`~saddlesvm.problem.kernel.make_kernel_problem`.
    seed : int
        The k-th problem is solved with ``seed + k``.
    bar : ProgressBar, optional
        Told of every record, and of every problem that is done.

    Returns
    -------
    list of FitResult
        `coef` holds the coefficients of all rows: a CSR array of shape (1, n).
    """
    told = [*callbacks, *([bar] if bar else ())]
    n = X.shape[0]

    def solve(sub: SubProblem, stop: threading.Event) -> FitResult:
        problem: Any
        problem, members = make_kernel_problem(X, kernel, sub.y, loss, weights=weights, members=sub.members, **options)
        result = fit(problem, solver, limits, seed=seed + sub.index, callbacks=told, stop=stop, label=sub.label)
        if bar:
            bar.next_problem()
        support = np.flatnonzero(result.coef)
        parts = (result.coef[support], members[support], [0, support.size])
        return dataclasses.replace(result, coef=sparse.csr_array(parts, shape=(1, n)))

    return solve_all(problems, solve, n_jobs)
