"""The problem of some rows: a block's, a part's, or chosen ones; their numbers, targets, weights and norms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from saddlesvm.problem.losses import SquaredHinge
from saddlesvm.problem.problem import Problem, make_problem
from saddlesvm.rows.files import BlockReader
from saddlesvm.rows.layouts import as_rows
from saddlesvm.rows.passes import FromFiles, InMemory
from support import csr, labels, matrix

N, EDGES = 50, np.array([0, 11, 20, 33, 50])


def posed(layout: str, members: np.ndarray | None = None, **options: Any) -> Problem:
    """A problem in the lambda form, with weights."""
    X = matrix(N, 5, density=0.6)
    rows = as_rows(X if layout == "dense" else csr(X), 1.0)
    given = {"lam": 0.02, "weights": np.arange(1.0, N + 1.0), "members": members, "intercept": "free"} | options
    return make_problem(rows, labels(X, SquaredHinge()), SquaredHinge(), **given)


def agrees(found: Problem, whole: Problem, chosen: np.ndarray) -> None:
    """Whether the members of a problem are these rows of another one, in this order."""
    assert found.members.dtype == np.int32
    for k, i in zip(found.members, chosen, strict=True):
        assert found.X.dense_row(k).tolist() == whole.X.dense_row(i).tolist()
        assert (found.y[k], found.weights[k], found.norms[k]) == (whole.y[i], whole.weights[i], whole.norms[i])
    assert (found.uses_lambda, found.share, found.place) == (False, 1.0, None)
    assert found.C == whole.C


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("members", [None, np.flatnonzero(np.arange(N) % 3 > 0).astype(np.int32)])
def test_a_block_has_the_members_of_its_chunks(layout: str, members: np.ndarray | None) -> None:
    problem = posed(layout, members)
    assert problem.uses_lambda
    with BlockReader(problem.X, EDGES, 3, np.zeros(N)) as reader:
        for chunks in ([0, 1], [3, 0], [2], [3, 1, 2]):
            rows = np.concatenate([np.arange(EDGES[k], EDGES[k + 1]) for k in chunks])
            found = problem.restrict_to_rows(*reader.fetch(chunks))
            agrees(found, problem, rows[np.isin(rows, problem.members)])


@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_a_part_of_a_pass_has_its_rows(layout: str) -> None:
    problem = posed(layout)
    with BlockReader(problem.X, EDGES, 1, np.zeros(N)) as reader:
        parts = FromFiles(reader, problem.members).each(problem.restrict_to_part)
        for k, part in enumerate(parts):  # a later one reuses its memory
            agrees(part, problem, np.arange(EDGES[k], EDGES[k + 1]))
    [whole] = InMemory(problem.X, problem.members).each(lambda part: part)
    assert problem.restrict_to_part(whole) is problem


def test_chosen_rows_keep_their_order_and_values_spread_to_all_rows() -> None:
    chosen = np.array([7, 3, 40])
    problem = posed("dense", np.sort(chosen).astype(np.int32))
    rows = problem.X._replace(values=problem.X.values[chosen])  # type: ignore[union-attr]
    agrees(problem.restrict_to_rows(rows, chosen), problem, chosen)
    values = np.array([1.0, 2.0, 3.0])
    spread = problem.scatter(values)
    assert spread[[3, 7, 40]].tolist() == [1.0, 2.0, 3.0]
    assert np.count_nonzero(spread) == 3
    assert problem.gather(spread).tolist() == [1.0, 2.0, 3.0]
    assert problem.gather(values) is values
    assert problem.scatter(spread) is spread
