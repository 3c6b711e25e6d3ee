"""What a solver is given, and what the suite asks of an adapter.

The modules ``worker``, ``task``, ``peers`` and ``adapters`` need no more than NumPy, SciPy and the package of the peer
that is run, so that a peer may live in an interpreter of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

EPOCHS = (1, 2, 3, 5, 8, 12, 20, 30, 50, 80, 120, 200, 400, 1000, 3000, 10_000, 30_000, 100_000, 1_000_000)
TOLERANCES = (1.0, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9)
TIGHT = 1e-12  # tolerance of a peer whose ladder counts epochs


@dataclass(frozen=True, eq=False)
class Task:
    """One problem, without an intercept: ``1/2 ||w||^2 + C sum phi(y_i x_i.w)``.

    Attributes
    ----------
    X : ndarray or CSR matrix of shape (n, d), float32 or float64
    y : ndarray of shape (n,), -1.0 and 1.0
    loss : {"hinge", "squared_hinge", "logistic"}
    C : float
    threads : int
    seed : int
    limit : float
        Seconds that one fit may take.
    scratch : Path
        A folder for files that the solver needs.
    """

    X: Any
    y: np.ndarray
    loss: str
    C: float
    threads: int
    seed: int
    limit: float
    scratch: Path

    @property
    def n(self) -> int:
        """Rows."""
        return int(self.X.shape[0])

    @property
    def lam(self) -> float:
        """lambda = 1 / (n C)."""
        return 1.0 / (self.n * self.C)

    def rows_as(self, dtype: Any) -> Any:
        """The rows in another precision; the very same where they have it already."""
        return self.X if self.X.dtype == dtype else self.X.astype(dtype)

    def part(self, rows: int) -> Task:
        """The same task on a few rows of both classes."""
        half = max(1, rows // 2)
        chosen = np.concatenate([np.flatnonzero(self.y == sign)[:half] for sign in (-1.0, 1.0)])
        return Task(
            self.X[chosen], self.y[chosen], self.loss, self.C, self.threads, self.seed, self.limit, self.scratch
        )


@dataclass(frozen=True, eq=False)
class Adapter:
    """A solver made ready for a task.

    Attributes
    ----------
    fit : callable
        Takes a rung of the ladder (epochs, or a tolerance), gives a model; this alone is timed.
    weights : callable
        The weights of a model, shape (d,).
    facts : callable
        What else a model tells: "epochs", and, of a certified one, "bound" (the dual objective).
    """

    fit: Callable[[float], Any]
    weights: Callable[[Any], np.ndarray]
    facts: Callable[[Any], dict[str, float]] = field(default=lambda model: {})


@dataclass(frozen=True)
class Peer:
    """A solver of the suite.

    Attributes
    ----------
    name, title : str
        For the command line, and for people.
    module, distribution : str
        Must be importable; its version is written down.
    losses : dict of str to str
        Our name of a loss, and its name there.
    ladder : tuple of float
        From a rough fit to an exact one, each begun anew.
    rung : {"epochs", "tol"}
        What the ladder counts.
    adapt : callable
        Takes the task and the name of the loss there; everything that is not timed happens in it.
    ours : bool
    compiled : bool
        Compiles or loads kernels at its first fit; warmed up on the data themselves.
    parallel_only : bool
        Differs from another peer only where there are several cores.
    """

    name: str
    title: str
    module: str
    distribution: str
    losses: dict[str, str]
    ladder: tuple[float, ...]
    rung: str
    adapt: Callable[[Task, str], Adapter]
    ours: bool = False
    compiled: bool = False
    parallel_only: bool = False


def float64_objective(task: Task, w: np.ndarray) -> float:
    """``1/2 ||w||^2 + C sum phi`` in float64, a few rows at a time."""
    w = np.asarray(w, dtype=np.float64).ravel()
    if w.size != task.X.shape[1]:
        raise ValueError(f"{w.size} weights for {task.X.shape[1]} features")
    paid = 0.0
    step = 20_000
    for start in range(0, task.n, step):
        rows = task.X[start : start + step].astype(np.float64)
        paid += float(loss_values(task.loss, task.y[start : start + step] * (rows @ w)).sum())
    return 0.5 * float(w @ w) + task.C * paid


def loss_values(loss: str, margins: np.ndarray) -> np.ndarray:
    """phi at the margins ``y_i x_i.w``."""
    if loss == "logistic":
        return np.logaddexp(0.0, -margins)
    slack = np.maximum(0.0, 1.0 - margins)
    return slack if loss == "hinge" else slack * slack


def csr_of(X: Any) -> Any:
    """The rows as a float64 ``csr_matrix``, which some peers ask for by its type."""
    return sparse.csr_matrix(X, dtype=np.float64)
