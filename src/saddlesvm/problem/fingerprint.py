"""Fingerprints of a problem and its solver: only the fit that wrote a checkpoint continues it."""

from __future__ import annotations

import zlib

import numpy as np

from saddlesvm.problem.problem import Problem
from saddlesvm.problem.terms import weights_at
from saddlesvm.rows.layouts import Rows, dot_rows
from saddlesvm.rows.passes import sample_rows


def fingerprint(problem: Problem, solver: object) -> dict[str, object]:
    """Return the facts that must be equal for a checkpoint to be resumed."""
    if problem.holds_rows:
        chosen = sample_rows(problem.X) if problem.on_files else problem.members
        return marks(problem, solver, sketch(problem.X, chosen))
    return marks(problem, solver, problem.passes.margins(direction_of(problem.X)))


def sketch(X: Rows, members: np.ndarray) -> np.ndarray:
    """The products of rows with a random direction; they differ even if norms are equal."""
    products = np.empty(members.size)
    dot_rows(X, members, direction_of(X), products)
    return products


def direction_of(X: Rows) -> np.ndarray:
    """A random direction, the same for all rows of one width."""
    return np.random.default_rng(0).standard_normal(X.n_features + 1)


def marks(problem: Problem, solver: object, products: np.ndarray) -> dict[str, object]:
    """Return the problem's size, options and data sums, and the solver.

    The rows' :func:`sketch` stands for the rows.
    """
    members = problem.members
    weights = weights_at(problem.weights, members)
    # Checksums stand for labels, weights and the products of the rows with a fixed vector.
    return {
        "problem": problem.describe(),
        "loss": repr(problem.loss),
        "penalty": repr(problem.penalty),
        "scale": problem.scale,
        "C": problem.C,
        "labels": zlib.crc32(np.ascontiguousarray(problem.y[members]).data),
        "rows": zlib.crc32(products.data),
        "weights": zlib.crc32(np.ascontiguousarray(weights).data),
        "solver": repr(solver),
    }
