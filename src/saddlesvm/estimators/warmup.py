"""Compile ahead: the kernels of given combinations, for images, continuous integration, and the impatient."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from scipy import sparse

from saddlesvm.estimators.linear import LinearSVC, LinearSVR
from saddlesvm.estimators.svc import SVC
from saddlesvm.estimators.svm import SVR
from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Limits, NotCertifiedWarning
from saddlesvm.multiclass.class_descent import ClassDescent
from saddlesvm.problem.losses import make_loss, traits_of
from saddlesvm.problem.problem import make_problem
from saddlesvm.rows.layouts import as_rows
from saddlesvm.rows.small_types import bfloat16
from saddlesvm.runtime.allowed import one_of
from saddlesvm.runtime.clock import seconds_compiling
from saddlesvm.runtime.lazy import Later
from saddlesvm.runtime.option_names import DTYPES, LAYOUTS, USUAL_LAYOUTS, USUAL_LOSSES
from saddlesvm.solvers.threaded.descent import ParallelDCD

only_own_kernels = Later("saddlesvm.runtime.compiler:only_own_kernels")

# Newton's equations over features, and over rows; more values than small problems have, which need no kernels.
TALL, WIDE = (8_000, 8), (300, 600)
TALLEST = (32_000, 8)  # of one class against one: each pair has half of the rows
FEW = (400, 6)  # of kernel machines, which have no NumPy twins
FITS = ((TALL, "dcd"), (TALL, "newton"), (WIDE, "newton"), (TALL, "auto"))
CLASSES = 4  # that begin together
EDGES = (0.25, 0.5, 0.75)  # quantiles of the targets between as many classes


def warmup(
    loss: str | Sequence[str] = USUAL_LOSSES,
    layout: str | Sequence[str] = USUAL_LAYOUTS,
    dtype: str | Sequence[str] = "float64",
    *,
    watch: Callable[[str, float], Any] | None = None,
    **options: Any,
) -> float:
    """Compile the kernels of the default solver, so that first fits need not wait for them.

    Small problems, up to some 100,000 stored values, need nothing compiled.

    Kernels are kept on disk, for each combination of loss, layout and precision, beside the package or in the folder of
    the environment variable ``NUMBA_CACHE_DIR``. They are for the processor that compiled them. New processes use them
    instead of the kernels of a wheel.

    Parameters
    ----------
    loss : str or sequence of str
        Losses of :class:`~saddlesvm.LinearSVC` and :class:`~saddlesvm.LinearSVR`; by default those that these have by
        default.
    layout : str or sequence of str
        "dense", "csr" (with int32 indices), "csr64" (with int64 ones); the first two by default.
    dtype : str or sequence of str, default="float64"
        Of the data: "float64", "float32"; for dense rows also "float16", "bfloat16", "int8", "uint8" and "bool".
    watch : callable, optional
        Called with the name of each combination and the seconds that it took to compile, when it is ready.
    **options
        Of the estimators, such as ``n_jobs=2`` (for fits within which threads work), ``intercept="free"``,
        ``penalty="l1"``, or ``multi_class`` with "ovo",
        "crammer_singer", "multinomial" or "top_k". ``kernel="rbf"`` compiles for :class:`~saddlesvm.SVC` and
        :class:`~saddlesvm.SVR`, whose losses are "hinge" and "epsilon_insensitive".

    Returns
    -------
    float
        Seconds spent compiling; 0 if every kernel exists.

    Raises
    ------
    ValueError
        An option is not one of those above, or not one of the estimators.

    Examples
    --------
    >>> import saddlesvm
    >>> spent = saddlesvm.warmup(loss="squared_hinge", layout="dense")
    >>> saddlesvm.warmup(loss="squared_hinge", layout="dense")
    0.0
    """
    asked = [[one] if isinstance(one, str) else list(one) for one in (loss, layout, dtype)]
    for name, given, allowed in (("layout", asked[1], LAYOUTS), ("dtype", asked[2], DTYPES)):
        for one in given:
            one_of(name, one, allowed)
    makers = {name: _estimator(name, options) for name in asked[0]}
    began = seconds_compiling()
    if not any(_goes_together(*pair) for pair in product(*asked[1:])):
        raise ValueError(f"dtype={dtype!r} is for dense rows; got layout={layout!r}")
    for name, one_layout, one_dtype in product(*asked):
        if not _goes_together(one_layout, one_dtype):
            continue
        before = seconds_compiling()
        with warnings.catch_warnings(), only_own_kernels():
            warnings.simplefilter("ignore", NotCertifiedWarning)
            _fit_all(makers[name], one_layout, one_dtype)
        if watch is not None:
            watch(f"{name}, {one_layout}, {one_dtype}", seconds_compiling() - before)
    return seconds_compiling() - began


def _estimator(loss: str, options: dict[str, Any]) -> Callable[..., Any]:
    """A maker of an estimator with a loss, the options checked: a kernel machine where they name a kernel."""
    regression = traits_of(make_loss(loss)).task == "regression"
    kernel = "kernel" in options
    kind: Any = (SVR if kernel else LinearSVR) if regression else (SVC if kernel else LinearSVC)
    fixed = {"loss": loss} if kernel else {"loss": loss, "random_state": 0, "tol": 1e-6}

    def make(**more: Any) -> Any:
        return kind(**fixed | options | more)

    make().check_options()
    return make


def _fits(model: Any, way: str) -> Sequence[tuple[tuple[int, int], str]]:
    """The fits that a model's options need: shapes of the data, and solvers."""
    if isinstance(model, (SVC, SVR)):
        return ((FEW, "auto"),)
    if way == "ovo":
        return ((TALLEST, "dcd"), (TALLEST, "newton"), (TALLEST, "auto"))
    if way != "ovr":
        return ((TALL, "auto"),)
    return FITS if model.penalty == "l2" else ((TALL, "auto"), (WIDE, "auto"))


def _goes_together(layout: str, dtype: str) -> bool:
    """Whether rows of a layout can have a type: sparse ones are float32 or float64."""
    return layout == "dense" or dtype in ("float32", "float64")


def _typed(dense: np.ndarray, dtype: str) -> np.ndarray:
    """Numbers of a standard normal distribution in a type; those of a byte in steps of a sixteenth."""
    if dtype == "bool":
        return dense > 0.0
    if dtype in ("int8", "uint8"):
        return np.clip(np.round(16.0 * dense), *((-128, 127) if dtype == "int8" else (0, 255))).astype(dtype)
    if dtype == "bfloat16":
        return (dense.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16).view(bfloat16)
    return dense.astype(dtype)


def _sparse(dense: np.ndarray, index: type) -> sparse.csr_matrix:
    """A CSR matrix with indices of the given type."""
    X = sparse.csr_matrix(dense)
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    return X


def _fit_all(make: Callable[..., Any], layout: str, dtype: str) -> None:
    """Quick fits that go through all that the default solver does: descent, the finish, and classes together."""
    random = np.random.default_rng(0)
    of_options = make()
    classes = isinstance(of_options, (LinearSVC, SVC))
    way = getattr(of_options, "multi_class", "ovr")
    for shape, solver in _fits(of_options, way):
        dense = random.normal(size=shape)
        X = _typed(dense, dtype)
        X = X if layout == "dense" else _sparse(X, np.int64 if layout == "csr64" else np.int32)
        target: Any = dense[:, 0] + 0.5 * random.normal(size=shape[0])
        if classes:
            target = target > 0.0 if way == "ovr" else np.digitize(target, np.quantile(target, EDGES))
        model = make(solver=solver).fit(X, target)
    if isinstance(model, LinearSVC) and way == "ovr" and model.penalty == "l2":
        labels = np.where(random.normal(size=(TALL[0], CLASSES)) > 0.0, 1, -1).astype(np.int8)
        problem = make_problem(as_rows(X, 1.0), labels[:, 0], make_loss(model.loss), C=1.0, intercept="regularized")
        ClassDescent(problem, labels, np.zeros(labels.shape), np.ones(CLASSES)).run(0.1, 0, lambda: False, 2.0)
    threads = isinstance(model, (LinearSVC, LinearSVR)) and effective_n_jobs(model.n_jobs) > 1
    if threads and way in ("ovr", "ovo") and model.penalty == "l2":
        one = make_problem(
            as_rows(X, 1.0), np.sign(target - 0.5), make_loss(model.loss), C=1.0, intercept="regularized"
        )
        fit(one, ParallelDCD(2), Limits(tol=1e-6, max_epochs=100))
