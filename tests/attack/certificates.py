"""Hostile random problems, solved by the package, their certificates judged in 120 digits.

A claim is refuted where the true objective of the returned floats is above the certificate's primal, where the true
dual objective of the returned dual point is below its dual, or where the dual is above the true objective of any model
that was found for the same problem.
"""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
from scipy import sparse

from saddlesvm.fit.limits import Limits
from saddlesvm.fit.loop import fit
from saddlesvm.problem.crammer_singer import make_joint_problem
from saddlesvm.problem.kernel import make_kernel_problem
from saddlesvm.problem.losses import LOSSES, make_loss
from saddlesvm.problem.problem import make_problem
from saddlesvm.rows.kernels import Kernel
from saddlesvm.rows.layouts import as_rows
from saddlesvm.solvers import DCD, SDCA, Newton, Pegasos
from saddlesvm.solvers.automatic.auto import Auto
from saddlesvm.solvers.crammer_singer import CrammerSinger
from saddlesvm.solvers.kernel.decomposition import KernelDecomposition
from saddlesvm.solvers.kernel.pegasos import KernelPegasos

from . import judge

CLASSIFIERS = ("hinge", "squared_hinge", "smooth_hinge", "logistic")
REGRESSORS = ("squared", "absolute", "epsilon_insensitive", "squared_epsilon_insensitive", "huber", "pinball")
OPTION = {"smooth_hinge": "width", "epsilon_insensitive": "epsilon", "squared_epsilon_insensitive": "epsilon"}
OPTION |= {"huber": "delta", "pinball": "tau"}
KERNELS = ("linear", "rbf", "laplacian", "poly", "cosine", "precomputed")
LEAST, MOST, MIDDLE = 2, 40, 8  # rows; features at most
EPOCHS, SECONDS = 200, 1.0


@dataclass
class Tally:
    """What became of the cases: their number, outcomes by family, and what was refuted."""

    cases: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    name: str = "certificates"

    def __str__(self) -> str:
        told = ", ".join(f"{count} {name}" for name, count in sorted(self.outcomes.items()))
        return f"{self.name}: {self.cases} cases, {len(self.failures)} refuted ({told})"


def certificates(seed: int, first: int, count: int) -> Tally:
    """Judge the cases of these numbers."""
    tally = Tally()
    for number in range(first, first + count):
        random = np.random.default_rng([seed, number])
        family = str(random.choice(["linear", "linear", "linear", "joint", "kernel"]))
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                said, outcome = FAMILIES[family](random)
            except Exception as error:  # a case is there to provoke them
                said, outcome = [f"raised {error!r}"], "raised"
        tally.cases += 1
        tally.outcomes[f"{family} {outcome}"] += 1
        tally.failures += [f"case {seed}:{number} ({family}): {one}" for one in said]
    return tally


def hostile_rows(random: np.random.Generator) -> np.ndarray:
    """Rows of a random size, scale and kind of trouble, float32 or float64."""
    n, d = int(random.integers(LEAST, MOST)), int(random.integers(1, MIDDLE))
    X = random.normal(size=(n, d))
    match random.integers(7):
        case 0:
            X *= 10.0 ** random.uniform(-6, 6, d)
        case 1:
            X *= 10.0 ** random.uniform(-4, 4, (n, 1))
        case 2:
            X[:, 0] = 1.0
            X += 10.0 ** random.uniform(0, 6)
        case 3:
            X = X[random.integers(0, max(1, n // 4), n)]
        case 4:
            X[random.random(X.shape) < 0.7] = 0.0
        case 5:
            X = np.round(X)
    return X.astype(np.float32 if random.random() < 0.3 else np.float64)


def hostile_targets(random: np.random.Generator, X: np.ndarray, classify: bool) -> np.ndarray:
    """Labels -1 and +1, both of them, or targets near and far from zero."""
    n = len(X)
    score = X.astype(np.float64) @ random.normal(size=X.shape[1]) + random.normal(size=n)
    if not classify:
        return np.asarray((score + 10.0 ** random.uniform(-2, 5)) * 10.0 ** random.uniform(-4, 3))
    y = np.where(score > np.median(score), 1.0, -1.0)
    y[0], y[-1] = 1.0, -1.0
    return y


def hostile_weights(random: np.random.Generator, n: int) -> np.ndarray | None:
    """Row weights over a wide range, some zero; mostly none."""
    if random.random() < 0.6:
        return None
    weights = np.where(random.random(n) < 0.2, 0.0, 10.0 ** random.uniform(-6, 6, n))
    weights[[0, -1]] = 1.0
    return weights


def limits_of(random: np.random.Generator) -> Limits:
    """A gap between loose and out of reach, and little time."""
    return Limits(tol=10.0 ** random.uniform(-13, -1), max_epochs=float(random.integers(1, EPOCHS)), max_time=SECONDS)


def linear(random: np.random.Generator) -> tuple[list[str], str]:
    """A linear machine of any loss."""
    name = str(random.choice([*CLASSIFIERS, *REGRESSORS]))
    option = float(random.choice([0.1, 0.5, 0.9]))
    loss = make_loss(name, **({OPTION[name]: option} if name in OPTION else {}))  # type: ignore[arg-type]
    X = hostile_rows(random)
    y, weights = hostile_targets(random, X, name in CLASSIFIERS), hostile_weights(random, len(X))
    kind = str(random.choice(["none", "regularized", "free"]))
    scale = 0.0 if kind == "none" else float(random.choice([1.0, 3.0, 0.1]))
    C = float(10.0 ** random.uniform(-8, 8))
    form: dict[str, Any] = {"C": C} if random.random() < 0.7 else {"lam": C}
    given = sparse.csr_array(X) if random.random() < 0.4 else X
    problem = make_problem(as_rows(given, scale), y, loss, weights=weights, intercept=kind, **form)  # type: ignore[arg-type]
    smooth = name in ("logistic", "squared", "squared_hinge", "smooth_hinge", "huber", "squared_epsilon_insensitive")
    solvers: list[Any] = [SDCA(), DCD(), Pegasos(), Auto(), *([Newton()] if smooth else [])]
    chosen = random.permutation(len(solvers))[:2]
    found = [fit(problem, solvers[k], limits_of(random), seed=int(random.integers(1000))) for k in chosen]
    told = f"{name} {kind} C={problem.C:.3g} {X.shape} {X.dtype} {type(problem.X).__name__}"
    # lambda is what the user gave: the judge takes its own C from it
    exact_C = Decimal(C) if "C" in form else 1 / (Decimal(C) * problem.n)
    case = judge.make_case(X, y, weights, 1.0, judge.textbook(name, option), kind, scale or 1.0)
    case = judge.Case(case.X, case.y, case.weights, exact_C, case.loss, case.intercept, case.scale)
    unit = Decimal(1) if "C" in form else Decimal(C)
    kept = problem.members
    claims = [
        (judge.primal(case, one.coef, one.intercept), judge.dual(case, one.alpha[kept]), one.certificate)
        for one in found
    ]
    names = [repr(solvers[k]) for k in chosen]
    return refuted(claims, unit, [f"{told} {one}" for one in names]), str(found[0].outcome)


def joint(random: np.random.Generator) -> tuple[list[str], str]:
    """Crammer and Singer's machine."""
    X = hostile_rows(random)
    K = int(random.integers(3, 6))
    codes = random.integers(0, K, len(X)).astype(np.float64)
    weights = hostile_weights(random, len(X))
    kind = str(random.choice(["none", "regularized"]))
    scale = 0.0 if kind == "none" else 1.0
    C = float(10.0 ** random.uniform(-8, 8))
    options = {"C": C, "weights": weights, "intercept": kind}
    problem = make_joint_problem(as_rows(X, scale), codes, K, make_loss("hinge"), **options)
    one = fit(problem, CrammerSinger(), limits_of(random))
    case = judge.make_case(X, codes, weights, C, judge.textbook("hinge"), kind)
    claim = (
        judge.joint_primal(case, one.coef, np.atleast_1d(one.intercept)),
        judge.joint_dual(case, one.alpha[problem.members]),
        one.certificate,
    )
    return refuted([claim], Decimal(1), [f"joint C={C:.3g} {X.shape} {X.dtype}"]), str(one.outcome)


def kernel(random: np.random.Generator) -> tuple[list[str], str]:
    """A machine in a kernel's feature space."""
    X = hostile_rows(random)
    X = X[:25]
    y, metric = hostile_targets(random, X, classify=True), str(random.choice(KERNELS))
    gamma, degree = float(10.0 ** random.uniform(-3, 1)), int(random.integers(1, 4))
    coef0, C = float(random.choice([0.0, 1.0])), float(10.0 ** random.uniform(-6, 6))
    kind = str(random.choice(["none", "regularized", "free"]))
    name = str(random.choice(["hinge", "squared_hinge"]))
    chosen = Kernel(metric, gamma=gamma, degree=degree, coef0=coef0)
    given = X if metric != "precomputed" else np.asarray(X.astype(np.float64) @ X.T.astype(np.float64))
    if metric == "precomputed":
        given = np.maximum(given, given.T)
    problem, _ = make_kernel_problem(given, chosen, y, make_loss(name), C=C, intercept=kind)  # type: ignore[arg-type]
    solver = KernelPegasos() if name == "hinge" and random.random() < 0.4 else KernelDecomposition()
    one = fit(problem, solver, limits_of(random))  # type: ignore[arg-type]
    rows = [[Decimal(float(value)) for value in row] for row in given]
    if metric == "precomputed":
        K = rows
    else:
        spread = Decimal(gamma), Decimal(coef0), degree
        K = [[judge.kernel_value(metric, x, t, *spread) for t in rows] for x in rows]
    added = Decimal(1) if kind == "regularized" else Decimal(0)
    K = [[value + added for value in row] for row in K]
    case = judge.make_case(given, y, None, C, judge.textbook(name), kind)
    size = float(one.coef.sum()) if kind == "regularized" else 0.0
    offset = one.intercept if kind == "free" else one.intercept - size
    above, below = judge.kernel_objectives(case, K, one.coef, offset if kind == "free" else 0.0, one.alpha)
    told = f"{metric} {name} {kind} C={C:.3g} {X.shape} {X.dtype} gamma={gamma:.3g} degree={degree} {solver!r}"
    return refuted([(above, below, one.certificate)], Decimal(1), [told]), str(one.outcome)


def refuted(claims: list[tuple[Decimal, Decimal, Any]], unit: Decimal, told: list[str]) -> list[str]:
    """What the judge says of certificates of one problem's models."""
    said = []
    lowest = min(primal for primal, _, _ in claims) * unit
    for (primal, dual, certificate), case in zip(claims, told, strict=True):
        if not np.isfinite([certificate.primal, certificate.dual]).all():
            continue
        claimed = Decimal(certificate.primal), Decimal(certificate.dual)
        size = max(abs(claimed[0]), abs(claimed[1]), Decimal("1e-300"))
        if primal * unit > claimed[0]:
            said.append(f"{case}: the primal is above the claim by {float((primal * unit - claimed[0]) / size):.2g}")
        if dual * unit < claimed[1]:
            said.append(f"{case}: the dual is below the claim by {float((claimed[1] - dual * unit) / size):.2g}")
        if claimed[1] > lowest:
            said.append(f"{case}: the dual claim is above a model by {float((claimed[1] - lowest) / size):.2g}")
        if certificate.gap < 0.0:
            said.append(f"{case}: the gap is {certificate.gap:.2g}")
    return said


FAMILIES = {"linear": linear, "joint": joint, "kernel": kernel}
assert {*CLASSIFIERS, *REGRESSORS} <= {*LOSSES}
