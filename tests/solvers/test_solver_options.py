"""Solvers as objects: their names, options, copies and pickles."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from sklearn.base import clone

from saddlesvm.problem.losses import Hinge
from saddlesvm.solvers import DCD, SDCA, SOLVERS, Pegasos, make_solver
from support import (
    small_problem,
)

OPTIONS: list[Callable[[], Any]] = [
    lambda: SDCA("cyclic", "sgd", "average"),
    lambda: DCD(permutation=False, stopping="weight_change", threshold=0.5),
    lambda: Pegasos(64, True, "replacement", "random"),
]


@pytest.mark.parametrize("make", OPTIONS)
def test_solvers_print_compare_copy_and_pickle(make: Callable[[], Any]) -> None:
    solver = make()
    assert solver == make() and hash(solver) == hash(make())
    assert solver != type(solver)()
    assert eval(repr(solver)) == solver
    assert pickle.loads(pickle.dumps(solver)) == solver
    assert clone(solver) == solver and clone(solver, safe=False) is not solver
    assert type(solver)(**solver.get_params()) == solver
    assert make_solver(solver) is solver
    with pytest.raises(FrozenInstanceError):
        solver.threshold = 1.0


@pytest.mark.parametrize("name", ["dcd", "sdca", "pegasos"])
def test_a_name_stands_for_a_solver_with_its_defaults(name: str) -> None:
    assert make_solver(name) == SOLVERS[name]()
    assert SOLVERS[name].name == name


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: SDCA(sampling="random"), ["sampling", "'cyclic'", "'random'"]),
        (lambda: SDCA(start="alpha"), ["start", "'sgd'", "'alpha'"]),
        (lambda: SDCA(output="tail"), ["output", "'average'", "'tail'"]),
        (lambda: DCD(max_passes=0), ["max_passes", "at least 1", "0"]),
        (lambda: DCD(run_length=0), ["run_length", "at least 1", "0"]),
        (lambda: DCD(stopping="never"), ["stopping", "'projected_gradient'", "'never'"]),
        (lambda: DCD(threshold=0.0), ["threshold", "positive", "0.0"]),
        (lambda: DCD(threshold=math.nan), ["threshold", "nan"]),
        (lambda: Pegasos(0), ["batch_size", "at least 1", "0"]),
        (
            lambda: Pegasos(2.5),  # type: ignore[arg-type]
            ["batch_size", "2.5"],
        ),
        (lambda: Pegasos(sampling="cyclic"), ["sampling", "'cyclic'"]),
        (lambda: Pegasos(output="best"), ["output", "'tail_average'", "'best'"]),
        (lambda: make_solver("liblinear"), ["liblinear", "dcd", "sdca", "pegasos"]),
        (lambda: Pegasos(61).init(small_problem(Hinge()), 0), ["batch_size", "61", "60"]),
    ],
)
def test_bad_options_are_named(make: Callable[[], Any], words: list[str]) -> None:
    with pytest.raises(ValueError) as error:
        make()
    assert all(word in str(error.value) for word in words), str(error.value)
