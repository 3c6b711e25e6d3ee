"""The exponential and the logarithms against those of NumPy in long double."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from saddlesvm.runtime.compiled import kernel
from saddlesvm.runtime.exp_log import LEAST, exp_of_negative, log_of, log_one_plus

LONG = np.longdouble
SMALL = 10.0 ** np.random.default_rng(0).uniform(-299.0, 0.0, 20_000)
FRACTIONS = np.random.default_rng(1).random(20_000)


@kernel
def exponentials(t: np.ndarray, out: np.ndarray) -> None:
    for k in range(t.size):
        out[k] = exp_of_negative(t[k])


@kernel
def logarithms(p: np.ndarray, out: np.ndarray) -> None:
    for k in range(p.size):
        out[k] = log_of(p[k])


@kernel
def logarithms_of_more(u: np.ndarray, out: np.ndarray) -> None:
    for k in range(u.size):
        out[k] = log_one_plus(u[k])


def of_all(function: Any, arguments: Any) -> np.ndarray:
    arguments = np.asarray(arguments, dtype=np.float64)
    out = np.empty_like(arguments)
    function(arguments, out)
    return out


def relative_errors(function: Any, exact: Callable[[Any], Any], arguments: np.ndarray) -> np.ndarray:
    return np.abs(of_all(function, arguments) / exact(LONG(arguments)) - 1.0).astype(float)


def test_exponentials_are_as_exact_as_promised() -> None:
    t = np.concatenate([-SMALL, -5.0 * FRACTIONS, LEAST * FRACTIONS])
    assert (relative_errors(exponentials, np.exp, t) <= (4.0 - t) * 1e-16).all()


@pytest.mark.parametrize("arguments", [SMALL, FRACTIONS, 1.0 - SMALL], ids=["small", "fractions", "near one"])
def test_logarithms_are_exact_to_a_few_units_of_the_last_place(arguments: np.ndarray) -> None:
    for u in (arguments, -0.5 * arguments):
        assert relative_errors(logarithms_of_more, np.log1p, u).max() <= 1e-15
    below_one = arguments[arguments != 1.0]
    assert relative_errors(logarithms, np.log, below_one).max() <= 1e-15


def test_the_ends_are_exact() -> None:
    assert of_all(exponentials, [0.0, -np.inf, -1e4]).tolist() == [1.0, 0.0, 0.0]
    assert of_all(logarithms_of_more, [0.0, 1.0]).tolist() == [0.0, np.log(2.0)]
    assert of_all(logarithms, [1.0])[0] == 0.0
    assert -700.0 < of_all(logarithms, [0.0])[0] < -600.0


def test_what_is_no_number_stays_none() -> None:
    assert np.isnan(of_all(exponentials, [np.nan, -1.0])).tolist() == [True, False]
    assert np.isnan(of_all(logarithms_of_more, [np.nan])).all()
