"""Tools for readers who write the algorithms themselves: the solvers' random draws, and a check against the solvers.

The pages in ``docs/study`` derive each algorithm and give it in plain NumPy; ``check`` replays such a function, or a
reader's own, against the compiled solver with the same draws.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from saddlesvm.lab.study.cases import CASES, Case, Draws

__all__ = ["ALGORITHMS", "Agreement", "Draws", "check"]

TOLERANCE = 1e-10  # largest difference, relative to the largest value, that rounding explains in these short runs
ALGORITHMS = tuple(CASES)


@dataclass(frozen=True)
class Agreement:
    """The differences between a function's answers and the solver's.

    Attributes
    ----------
    algorithm : str
    differences : dict of str to float
        For each case and each answer the largest difference, relative to the largest value; infinite for a wrong shape.
    form : str
        Where the algorithm has several published forms, the one that the function is nearest to; else empty.
    """

    algorithm: str
    differences: dict[str, float]
    form: str = ""

    @property
    def worst(self) -> float:
        """The largest difference."""
        return max(self.differences.values())

    @property
    def agrees(self) -> bool:
        """Whether no difference is beyond rounding (1e-10)."""
        return self.worst <= TOLERANCE

    def __str__(self) -> str:
        verdict = "agrees with" if self.agrees else "differs from"
        form = f", {self.form}" if self.form else ""
        lines = [
            f"{self.algorithm}{form}: {verdict} the compiled solver (largest relative difference {self.worst:.1e})"
        ]
        width = max(map(len, self.differences))
        for words, difference in self.differences.items():
            mark = "" if difference <= TOLERANCE else "   <-- look here"
            lines.append(f"  {words:{width}}  {difference:.1e}{mark}")
        return "\n".join(lines)


def check(algorithm: str, function: Callable[..., Any]) -> Agreement:
    """Run `function` and the compiled solver on small data with the same draws, and compare what they return.

    Parameters
    ----------
    algorithm : str
        One of :data:`ALGORITHMS`. The page in ``docs/study`` states the arguments and results of the function:

        ==================  ============================================================  =================
        pegasos             X, y, lam, T, draws, k=1, project=False, bias=False           w, b
        kernel_pegasos      K, y, lam, T, draws                                           counts
        sdca                X, y, lam, epochs, draws, start="zero"                        alpha, w
        kernel_sdca         K, y, lam, epochs, draws                                      alpha
        dcd                 X, y, C, eps, draws, shrink=True, loss="hinge"                alpha, w
        second_order        X, y, C, steps, loss="hinge"                                  w
        crammer_singer      X, y, K, C, passes, draws                                     alpha, W
        ==================  ============================================================  =================

        Kernel Pegasos has two forms, and one of them has to be met: a row's margin is judged with ``1 / (lambda t)``,
        as figure 3 of the paper does, or by w_t itself, with ``1 / (lambda (t - 1))``.
    function : callable

    Returns
    -------
    Agreement
        Print it.

    Raises
    ------
    ValueError
        There is no such algorithm.
    """
    if algorithm not in CASES:
        raise ValueError(f"there is no algorithm {algorithm!r}: use one of {', '.join(ALGORITHMS)}")
    forms: dict[str, dict[str, float]] = {}
    for case in CASES[algorithm]():
        for name, given, expected in zip(case.names, _answers(function, case), case.expected, strict=True):
            forms.setdefault(case.form, {})[f"{case.words}: {name}"] = _difference(given, expected)
    return min((Agreement(algorithm, found, form) for form, found in forms.items()), key=lambda one: one.worst)


def _answers(function: Callable[..., Any], case: Case) -> Sequence[Any]:
    """The function's answers for a case, as a tuple."""
    returned = function(*case.arguments(), **case.options)
    answers = returned if isinstance(returned, tuple) else (returned,)
    if len(answers) != len(case.names):
        raise ValueError(f"the function must return {', '.join(case.names)}; it returned {len(answers)} values")
    return answers


def _difference(given: Any, expected: Any) -> float:
    """The largest difference relative to the largest expected value; infinite where the shapes do not agree."""
    given, expected = np.asarray(given, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    if given.shape != expected.shape or not np.isfinite(given).all():
        return float(np.inf)
    return float(np.abs(given - expected).max() / max(float(np.abs(expected).max()), 1e-300))
