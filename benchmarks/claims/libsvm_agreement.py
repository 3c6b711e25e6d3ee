"""Objectives and decision values of the kernel machines beside those of LIBSVM at a tight tolerance.

Twelve sets, five machines, three kernels, three values of C or nu: 540 pairs of fits. Both models are certified on the
same problem, by ``certify_kernel``. For each pair

* neither dual bound may exceed the other model's objective: both bounds are true of one optimum;
* decision values, their mean difference left out (an intercept need not be unique), may differ by what both gaps
  allow, ``|f(x) - f'(x)| <= sqrt(k(x, x)) (sqrt(2 gap) + sqrt(2 gap'))``: the objective is strongly convex in w. Values
  of NuSVC are divided by margins, which the gaps do not bound.

    python -m benchmarks.claims.libsvm_agreement
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn import datasets as sets, svm as theirs
from sklearn.preprocessing import scale

import saddlesvm as ours
from saddlesvm import certify_kernel
from saddlesvm.data import load_bundled
from saddlesvm.kernel.kernel_errors import kernel_errors

MOST_ROWS = 150
MACHINES = ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM")
KERNELS: tuple[dict[str, Any], ...] = (
    {"kernel": "linear"}, {"kernel": "rbf", "gamma": 0.1}, {"kernel": "poly", "degree": 2, "gamma": 0.1, "coef0": 1.0},
)  # fmt: skip
STRENGTHS = {"C": (0.1, 1.0, 10.0), "nu": (0.1, 0.2, 0.3)}
OURS_TOL = 1e-6
THEIR_TOL = 1e-6
ROUNDING = 1e-9  # relative, in decision values


class Cell(NamedTuple):
    """One pair of fits.

    Attributes
    ----------
    name : str
    gap, their_gap : float
        Relative.
    apart : float
        Largest difference of decision values, relative to what the gaps allow; NaN where they bound nothing.
    agrees : bool
    """

    name: str
    gap: float
    their_gap: float
    apart: float
    agrees: bool


def twelve() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Scaled rows, and labels or targets."""
    notes = load_bundled("banknote")
    found = {
        "iris": sets.load_iris(return_X_y=True),
        "wine": sets.load_wine(return_X_y=True),
        "breast cancer": sets.load_breast_cancer(return_X_y=True),
        "digits": sets.load_digits(return_X_y=True),
        "diabetes": sets.load_diabetes(return_X_y=True),
        "banknote": (notes.X, notes.y),
        "moons": sets.make_moons(300, noise=0.2, random_state=0),
        "circles": sets.make_circles(300, noise=0.1, factor=0.5, random_state=0),
        "blobs": sets.make_blobs(300, 4, centers=4, cluster_std=3.0, random_state=0),
        "noisy labels": sets.make_classification(300, 10, flip_y=0.1, random_state=0),
        "friedman 1": sets.make_friedman1(300, random_state=0, noise=1.0),
        "sines": sets.make_friedman2(300, random_state=0, noise=10.0),
    }
    chosen = {}
    for name, (X, y) in found.items():
        kept = np.random.default_rng(0).permutation(len(y))[:MOST_ROWS]
        chosen[name] = np.ascontiguousarray(scale(X[kept])), y[kept]
    return chosen


def for_machine(name: str, y: np.ndarray) -> np.ndarray:
    """Labels of a classifier (above the median or not, for targets), or scaled targets."""
    if not name.endswith("SVC"):
        return np.asarray(scale(y.astype(np.float64)))
    return y > np.median(y) if np.unique(y).size > 10 else y


def compared(label: str, name: str, options: dict[str, Any], X: np.ndarray, y: np.ndarray) -> Cell | None:
    """A pair of fits; None where both find nothing, or nu is infeasible."""
    X = X + 2.0 if name == "OneClassSVM" else X  # away from the origin, around which there is nothing to find
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ours.NotCertifiedWarning)
            own = getattr(ours, name)(**options, tol=OURS_TOL, max_time=2).fit(X, y)
        if own.outcome_ is ours.Outcome.RULE_MET:
            return None
        other = getattr(theirs, name)(**options, tol=THEIR_TOL, cache_size=200).fit(X, y)
    except ValueError as error:
        if "infeasible" in str(error):
            return None
        raise
    one = certify_kernel(own, X, y)
    two = certify_kernel(other, X, y)
    slack = ROUNDING * (abs(one.primal) + abs(two.primal))
    agrees = one.dual <= two.primal + slack and two.dual <= one.primal + slack
    apart = np.nan
    if name != "NuSVC":
        lengths = kernel_errors(own.kernel_, X).lengths
        reach = lengths.max() * (np.sqrt(2 * one.gap) + np.sqrt(2 * two.gap))
        apart = _apart(own, other, X) / (2.0 * reach + ROUNDING * np.abs(_scores(other, X)).max())
        agrees = agrees and apart <= 1.0
    return Cell(label, one.relative_gap, two.relative_gap, float(apart), bool(agrees))


def _scores(model: Any, X: np.ndarray) -> np.ndarray:
    if hasattr(model, "decision_function"):
        model = model.set_params(decision_function_shape="ovo") if hasattr(model, "classes_") else model
        return np.asarray(model.decision_function(X)).reshape(len(X), -1)
    return np.asarray(model.predict(X))[:, None]


def _apart(own: Any, other: Any, X: np.ndarray) -> float:
    difference = _scores(own, X) - _scores(other, X)
    return float(np.abs(difference - difference.mean(axis=0)).max())


def cells(names: Sequence[str] | None = None, strengths: int = 3) -> Iterator[Cell]:
    """The pairs of fits, on some of the sets."""
    for label, (X, y) in twelve().items():
        if names and label not in names:
            continue
        for name, kernel in itertools.product(MACHINES, KERNELS):
            which = "C" if name in ("SVC", "SVR") else "nu"
            for value in STRENGTHS[which][:strengths]:
                called = f"{label}, {name}, {kernel['kernel']}, {which}={value:g}"
                found = compared(called, name, {**kernel, which: value}, X, for_machine(name, y))
                if found is not None:
                    yield found


def main() -> None:
    """Print what disagrees, and a line a machine."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="*", help="some of the sets")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = list(cells(parser.parse_args().sets))
    for cell in found:
        if not cell.agrees or cell.gap > OURS_TOL:
            print(f"{'not certified' if cell.agrees else 'DISAGREES'}: {cell}")
    print(f"{'machine':12} {'pairs':>6} {'agree':>6} {'our gap':>9} {'LIBSVM gap':>11} {'apart / allowed':>16}")
    for name in MACHINES:
        own = [cell for cell in found if f" {name}," in cell.name]
        worst = [max(values) for values in zip(*[(c.gap, c.their_gap) for c in own], strict=True)]
        apart = max((c.apart for c in own if np.isfinite(c.apart)), default=np.nan)
        print(f"{name:12} {len(own):6} {sum(c.agrees for c in own):6} {worst[0]:9.1e} {worst[1]:11.1e} {apart:16.2g}")


if __name__ == "__main__":
    main()
