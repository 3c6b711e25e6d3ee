"""Fingerprints of a problem and its solver: only the fit that wrote a checkpoint continues it."""

from __future__ import annotations

import zlib

import numpy as np

from saddlesvm.problem.problem import Problem
from saddlesvm.problem.terms import weights_at
from saddlesvm.rows.layouts import dot_rows
from saddlesvm.rows.passes import sample_rows


def fingerprint(problem: Problem, solver: object) -> dict[str, object]:
    """Return the facts that must be equal for a checkpoint to be resumed."""
    # The products of rows with a random direction differ even if norms are equal.
    direction = np.random.default_rng(0).standard_normal(problem.n_features + 1)
    if not problem.on_files:
        return marks(problem, solver, problem.passes.margins(direction))
    # Of rows in files, a sample has to do.
    chosen = sample_rows(problem.X)
    products = np.empty(chosen.size)
    dot_rows(problem.X, chosen, direction, products)
    return marks(problem, solver, products)


def marks(problem: Problem, solver: object, products: np.ndarray) -> dict[str, object]:
    """Return the problem's size, options and data sums, and the solver.

    Products of the rows with a direction stand for the rows.
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
