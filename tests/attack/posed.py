"""Random problems for every registered estimator, and ways to fit each: options, solvers, places, ends."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import saddlesvm
from saddlesvm.data import Store
from support import Every

from .hostile import hostile_rows, hostile_targets, hostile_weights
from .public import JOINT, Data

CLASSIFIERS = ("hinge", "squared_hinge", "smooth_hinge", "smooth_hinge:width=0.3", "logistic")
SMOOTH = ("squared_hinge", "smooth_hinge", "logistic", "squared", "huber:delta=0.7", "squared_epsilon_insensitive")
REGRESSORS = (
    "epsilon_insensitive", "squared_epsilon_insensitive", "absolute", "squared", "huber:delta=0.7", "pinball:tau=0.3",
)  # fmt: skip
LINEAR_SOLVERS = {
    "l2": ("auto", "auto", "dcd", "sdca", "pegasos", "blocks", "newton", "sdca:output=average", "dcd:shrinking=False"),
    "l1": ("auto", "columns"),
    "elasticnet": ("auto", "auto", "dcd", "columns", "pegasos"),
}
LAYOUTS = tuple((name, dtype) for name in ("C", "csr32", "F", "csr64") for dtype in (np.float64, np.float32))
KERNEL_SOLVERS = ("auto", "auto", "auto", "kernel-pegasos")
KERNELS = ("linear", "rbf", "rbf", "poly", "sigmoid", "precomputed", "callable")
EPOCHS, SECONDS = 100, 0.5  # a fit's limits, where it has no others
KERNEL_ROWS = 24
BLOCKS = 0.04  # share of the linear problems that are read block by block from a store
MEMORY = 90_000  # bytes, of which such a store takes more than half
CHOSEN = "auto:low=1e-2,high=1e2,gap=0.1,size=3"  # C along a path
FEW = 512  # rows, above which the one-class machine with the linear kernel is solved over the weights


@dataclass(frozen=True)
class Posed:
    """A problem: what kind of estimator solves it, the data, options that define it, and some that do not.

    Attributes
    ----------
    kind : type
    data : Data
    given : array, sparse matrix or Store
        The rows as they are handed over.
    options : dict
        They define the problem.
    ways : list of dict
        Of other options, one a fit.
    """

    kind: type
    data: Data
    given: Any
    options: dict[str, Any]
    ways: list[dict[str, Any]]


def inner_product(A: Any, B: Any) -> np.ndarray:
    """A kernel that is a function; exact for rows of small whole numbers."""
    return np.asarray((A @ B.T).toarray() if sparse.issparse(A) else A @ B.T)


def chance(random: np.random.Generator, share: float) -> bool:
    """True in this share of cases."""
    return bool(random.random() < share)


def one_of(random: np.random.Generator, values: Any) -> Any:
    """One of some values."""
    return values[int(random.integers(len(values)))]


def strength(random: np.random.Generator, wide: float = 8.0) -> float:
    """A C or a lambda: ordinary, or far from it."""
    reach = wide if chance(random, 0.5) else 2.0
    return float(10.0 ** random.uniform(-reach, reach))


def end(random: np.random.Generator, folder: Path) -> dict[str, Any]:
    """When a fit ends: by a gap between loose and out of reach, epochs, seconds, or a callback."""
    ways: dict[str, Any] = {"tol": float(10.0 ** random.uniform(-13, -1))}
    match random.integers(6):
        case 0 | 1:
            ways |= {"max_iter": int(one_of(random, [1, 2, 3, 5, 10]))}
        case 2:
            ways |= {"max_time": float(10.0 ** random.uniform(-4, -1.5)), "max_iter": EPOCHS}
        case 3:
            left = [int(random.integers(1, 5))]
            every = float(one_of(random, [0.5, 1.0, 3.0]))
            stop = Every(every, lambda record: left.__setitem__(0, left[0] - 1) or left[0] <= 0)
            ways |= {"max_iter": EPOCHS, "callbacks": [stop]}
        case 4:
            ways |= {"max_iter": int(random.integers(1, 30)), "tol": 0.0}
        case _:
            ways |= {"max_iter": EPOCHS}
    if chance(random, 0.05):
        ways["warm_start"] = True
    if chance(random, 0.03):
        ways["checkpoint"] = str(folder / f"{int(random.integers(2**31))}.checkpoint")
    return ways | {"max_time": ways.get("max_time", SECONDS)}


def labels(random: np.random.Generator, X: np.ndarray, K: int) -> np.ndarray:
    """Labels of K classes, all of them there."""
    score = hostile_targets(random, X, classify=False)
    codes = np.argsort(np.argsort(score, kind="stable"), kind="stable") * K // len(X)
    mixed = random.random(len(X)) < 0.2
    codes[mixed] = random.integers(0, K, int(mixed.sum()))
    codes[random.permutation(len(X))[:K]] = np.arange(K)
    names = [np.arange(K) * 3 - 1, np.array([f"class {k}" for k in range(K)])]
    return np.asarray(one_of(random, names)[codes])


def rows_with(random: np.random.Generator, least: int, most: int = 10**9) -> np.ndarray:
    """Hostile rows, so many at least and at most."""
    while True:
        X = hostile_rows(random)
        if len(X) >= least:
            return X[:most]


def wide_rows(random: np.random.Generator) -> np.ndarray:
    """Rows that take more than half of :data:`MEMORY`."""
    n, d = int(random.integers(380, 450)), int(random.integers(16, 20))
    return np.asarray(random.normal(size=(n, d)) * 10.0 ** random.uniform(-2, 2, d))


def weights_for(random: np.random.Generator, y: np.ndarray | None, n: int) -> np.ndarray | None:
    """Row weights; of each class some are positive."""
    weights = hostile_weights(random, n)
    if weights is not None and y is not None and y.ndim == 1:
        weights[np.unique(y, return_index=True)[1]] = 1.0
    return weights


def layout_of(random: np.random.Generator, loss: str) -> tuple[str, Any]:
    """The plain layout, or the other one of a loss: all layouts and losses together would be long to compile."""
    losses = (*CLASSIFIERS, *REGRESSORS)
    return LAYOUTS[0] if chance(random, 0.5) else LAYOUTS[1 + losses.index(loss) % (len(LAYOUTS) - 1)]


def handed(X: np.ndarray, layout: str, folder: Path, stored: bool) -> Any:
    """The rows as an array, a sparse matrix of either index size, or a store."""
    given: Any = np.asfortranarray(X) if layout == "F" else X
    if layout.startswith("csr"):
        given = sparse.csr_array(X)
        kind = np.int64 if layout == "csr64" else np.int32
        given.indices, given.indptr = given.indices.astype(kind), given.indptr.astype(kind)
    if not stored:
        return given
    shutil.rmtree(folder / "rows.store", ignore_errors=True)
    return Store.create(folder / "rows.store", given)


def intercepts(random: np.random.Generator) -> dict[str, Any]:
    """An intercept of any kind."""
    options: dict[str, Any] = {"intercept": one_of(random, ["regularized", "free", "none"])}
    options |= {"fit_intercept": False} if chance(random, 0.1) else {}
    return options | ({"intercept_scaling": one_of(random, [0.1, 3.0])} if chance(random, 0.3) else {})


def form(random: np.random.Generator) -> dict[str, Any]:
    """C or lambda."""
    return {"C" if chance(random, 0.7) else "lam": strength(random)}


def class_weights(random: np.random.Generator, y: np.ndarray) -> dict[str, Any]:
    """Weights of the classes, mostly none."""
    classes = np.unique(y).tolist()
    given = [None, None, None, "balanced", {classes[0]: float(10.0 ** random.uniform(-3, 3))}]
    return {"class_weight": one_of(random, given)}


def penalties(random: np.random.Generator) -> dict[str, Any]:
    """Half a square mostly, or the l1 norm or a mixture."""
    kind = one_of(random, ["l2", "l2", "l2", "l1", "elasticnet"])
    ratio = one_of(random, [0.0, 0.1, 0.5, 0.999, 1.0, float(random.random())])
    return {"penalty": kind} | ({"l1_ratio": ratio} if kind == "elasticnet" else {})


def linear_classifier(random: np.random.Generator, folder: Path) -> Posed:
    """LinearSVC: two classes, many in every way, or columns of labels."""
    K = int(one_of(random, [2, 2, 3, 4, 5]))
    stored = chance(random, BLOCKS)
    X = wide_rows(random) if stored else rows_with(random, K)
    several = chance(random, 0.06)
    y = (random.random((len(X), K)) < 0.4).astype(int) if several else labels(random, X, K)
    if several:
        y[0], y[-1] = 0, 1
    way = "ovr" if several else str(one_of(random, ["ovr", "ovo", *JOINT]) if K > 2 or chance(random, 0.2) else "ovr")
    options = {"multi_class": way, "loss": one_of(random, CLASSIFIERS)}
    options |= form(random) | intercepts(random) | penalties(random)
    if way in JOINT:
        options |= {"loss": "squared_hinge", "penalty": "l2"}
        options["intercept"] = one_of(random, ["regularized", "none", *(["free"] if way == "multinomial" else [])])
    if not several:
        options |= class_weights(random, y)
    data = Data(X, y, weights_for(random, y, len(X)))
    solvers = ("auto",) if way in JOINT else LINEAR_SOLVERS[options["penalty"]]
    return linear(random, folder, Posed(saddlesvm.LinearSVC, data, None, options, []), solvers, stored)


def linear_regression(random: np.random.Generator, folder: Path) -> Posed:
    """LinearSVR, of one target or several."""
    stored = chance(random, BLOCKS)
    X = wide_rows(random) if stored else rows_with(random, 2)
    columns = [hostile_targets(random, X, classify=False) for _ in range(2 if chance(random, 0.1) else 1)]
    y = np.column_stack(columns) if len(columns) > 1 else columns[0]
    options = {"loss": one_of(random, REGRESSORS), "epsilon": one_of(random, [0.0, 0.1, 2.0])}
    options |= form(random) | intercepts(random) | penalties(random)
    data = Data(X, y, weights_for(random, None, len(X)))
    solvers = LINEAR_SOLVERS[options["penalty"]]
    return linear(random, folder, Posed(saddlesvm.LinearSVR, data, None, options, []), solvers, stored)


def linear(random: np.random.Generator, folder: Path, posed: Posed, solvers: Any, stored: bool) -> Posed:
    """A linear machine, with several ways to fit it."""
    options = posed.options
    layout, dtype = layout_of(random, options["loss"])
    layout, dtype = ("C", np.float64) if stored else (layout, dtype)
    data, ways = Data(posed.data.X.astype(dtype), posed.data.y, posed.data.weights), []
    usable = [one for one in solvers if one != "newton" or options["loss"] in SMOOTH]
    usable = [one for one in usable if one != "blocks" or chance(random, 0.3)]  # each of its sweeps reads files
    for _ in range(int(random.integers(2, 6))):
        way = end(random, folder) | {"solver": one_of(random, usable), "random_state": int(random.integers(100))}
        way |= {"solver": "auto", "memory": MEMORY} if stored else {}
        ways.append(way | ({"n_jobs": 2} if chance(random, 0.03) else {}))
    if not stored and options["penalty"] == "l2" and chance(random, 0.02):
        options = {name: one for name, one in options.items() if name != "lam"} | {"C": CHOSEN}
    return Posed(posed.kind, data, handed(data.X, layout, folder, stored), options, ways)


def kernel_options(random: np.random.Generator, X: np.ndarray) -> tuple[np.ndarray, dict[str, Any]]:
    """Rows, and a kernel that may be taken of them."""
    name = one_of(random, KERNELS)
    options = {"kernel": name, "gamma": float(10.0 ** random.uniform(-3, 1)), "degree": int(random.integers(1, 4))}
    options["coef0"] = float(one_of(random, [0.0, 1.0]))
    if chance(random, 0.3):
        options["gamma"] = one_of(random, ["scale", "auto"])
    if name == "callable":
        X = np.clip(np.round(X), -1000.0, 1000.0)
        options["kernel"] = inner_product
    elif name == "precomputed":
        K = X.astype(np.float64) @ X.T.astype(np.float64)
        X = np.maximum(K, K.T)
    return X, options


def kernel_ways(random: np.random.Generator, folder: Path, model: Callable[..., Any]) -> list[dict[str, Any]]:
    """Several ways to fit a kernel machine."""
    ways, known = [], model().get_params()
    for _ in range(int(random.integers(2, 6))):
        way = end(random, folder) | {"solver": one_of(random, KERNEL_SOLVERS), "random_state": int(random.integers(99))}
        if "nu" in known and way["solver"] == "kernel-pegasos" and chance(random, 0.9):  # refused
            way["solver"] = "auto"
        if chance(random, 0.2):
            way["shrinking"] = False
        ways.append({name: value for name, value in way.items() if name in known})
    return ways


def kernel_machine(random: np.random.Generator, folder: Path, name: str) -> Posed:
    """SVC, SVR, NuSVC, NuSVR or OneClassSVM."""
    kind = getattr(saddlesvm, name)
    classify, K = name in ("SVC", "NuSVC"), int(one_of(random, [2, 2, 3, 4]))
    many = name == "OneClassSVM" and chance(random, 0.15)
    X = rows_with(random, 2 * K, KERNEL_ROWS)
    X, options = kernel_options(random, X)
    if many:
        X, options = random.normal(size=(FEW + int(random.integers(1, 50)), int(random.integers(1, 4)))), {}
        X = X * 10.0 ** random.uniform(-3, 3) + float(one_of(random, [0.0, 1.0, 10.0]))
        options = {"kernel": "linear"}
    y = labels(random, X, K) if classify else hostile_targets(random, X, classify=False)
    weights = weights_for(random, y if classify else None, len(X))
    if name == "SVR":
        options["epsilon"] = one_of(random, [0.0, 0.1, 2.0])
    elif name != "SVC":
        options["nu"] = float(one_of(random, [0.05, 0.2, 0.5, random.uniform(0.01, 1.0)]))
        if name == "NuSVC" and chance(random, 0.8):
            options["nu"] *= largest_nu(y, weights)
    if name == "SVC" and chance(random, 0.5):
        options |= form(random) | {"intercept": one_of(random, ["free", "none"])}
    elif name in ("SVC", "SVR", "NuSVR"):
        options["C"] = strength(random, 6.0)
    if classify:
        options |= class_weights(random, y)
    data = Data(X, y, weights)
    given = sparse.csr_array(X) if options["kernel"] != "precomputed" and chance(random, 0.3) else X
    return Posed(kind, data, given, options, kernel_ways(random, folder, kind))


def largest_nu(y: np.ndarray, weights: np.ndarray | None) -> float:
    """The largest nu that all pairs of classes allow, while class weights are left out."""
    totals = np.bincount(np.unique(y, return_inverse=True)[1], weights)
    return float(2.0 * totals.min() / (totals.min() + totals.max()))


def of_kernels(name: str) -> Callable[[np.random.Generator, Path], Posed]:
    """What poses problems of a kernel machine."""
    return lambda random, folder: kernel_machine(random, folder, name)


MAKERS: dict[str, Callable[[np.random.Generator, Path], Posed]] = {
    "LinearSVC": linear_classifier,
    "LinearSVR": linear_regression,
    **{name: of_kernels(name) for name in ("SVC", "SVR", "NuSVC", "NuSVR", "OneClassSVM")},
}
SHARES = {"LinearSVC": 6, "LinearSVR": 3}  # of the cases; 1 for the others
FAMILIES = [name for name in MAKERS for _ in range(SHARES.get(name, 1))]
