"""Fits, paths, folds and predictions of linear estimators whose rows are on a Dask cluster.

The estimators call this where X is a Dask array or DataFrame, or a list of files that the workers read. Nothing of Dask
is imported before that.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from saddlesvm.cluster.tasks import is_task
from saddlesvm.data.inputs import are_stores
from saddlesvm.data.store import Store
from saddlesvm.estimators.base import seed_of
from saddlesvm.estimators.class_weights import class_factors
from saddlesvm.fit.outcome import FitResult, Record, Trace
from saddlesvm.multiclass.splits import JOINT, loss_for
from saddlesvm.problem.loss import Loss
from saddlesvm.problem.penalties import L2
from saddlesvm.problem.problem import resolve_C
from saddlesvm.rows.device import is_on_device, sent
from saddlesvm.rows.memory_plan import memory_bytes
from saddlesvm.runtime.allowed import NUMBER

__all__ = [
    "checked", "fit_on_cluster", "is_distributed", "models_along", "over_blocks", "score_on_cluster",
    "search_on_cluster",
]  # fmt: skip

MEMORY = 2**28  # bytes of rows that are brought together on one worker, unless told otherwise
FEWEST_FOLDS = 2
# Options that a fit on a cluster does not have, their values where they are left alone, and what there is instead.
FOR_ONE_MACHINE = {
    "probability": (False, "fit saddlesvm.LinearSVC to rows in memory"),
    "warm_start": (False, "path() begins each fit where the last one ended"),
    "keep": ("best", "the best certified model is kept"),
    "gap": (0.0, "give tol, the relative gap"),
    "checkpoint": (None, "a fit continues after workers are lost; save() keeps a model"),
    "n_jobs": (None, "the threads of the workers do the work"),
}
Method = TypeVar("Method", bound=Callable[..., Any])
NOT_SENT = ("trace_", "rounds_", "dual_coef_", "feature_names_in_", "callbacks", "path_", "choice_")
NO_WEIGHTS = np.empty(0)  # the record of a round has none


def is_distributed(X: Any) -> bool:
    """Whether rows are on a cluster: a Dask collection, or a list of files or stores for workers to read, or of blocks
    that workers compute (delayed values or futures). Without a client of a cluster, a list of stores is read here."""
    if hasattr(X, "__dask_graph__"):
        return True
    if isinstance(X, (list, tuple)) and X and all(map(is_task, X)):
        return True
    files = isinstance(X, (list, tuple)) and bool(X) and all(isinstance(x, (str, os.PathLike, Store)) for x in X)
    return files and (_has_client() or not are_stores(X))


def _has_client() -> bool:
    """Whether a client of a cluster is in force."""
    distributed: Any = sys.modules.get("distributed")
    try:
        return distributed is not None and distributed.default_client() is not None
    except ValueError:
        return False


def begun(model: Any, X: Any, y: Any, sample_weight: Any, folds: int = 0) -> Any:
    """The fits of the problems of `model` over the partitions of X; the model learns classes and names of features.

    Returns
    -------
    ClusterFits

    Raises
    ------
    ValueError
        Bad data or options, or options that go on one machine only.
    ClusterLostError
        Rows are lost that cannot be computed again.
    """
    from saddlesvm.cluster import fits, part, rounds, sources

    (loss, solver, memory), multi_class = checked(model), model.multi_class
    blocks, client = sources.part_tasks(X, y, sample_weight), fits.client_in_force()
    labels = None
    if is_classifier(model):
        with fits.naming_losses(client):
            found = fits.classes_and_weights(client, blocks)
        labels = _learned(model, *found)
    kind, seed = model._intercept_kind(), seed_of(model.random_state)
    scale = 0.0 if kind == "none" else 1.0 if kind == "free" else float(model.intercept_scaling)
    split = part.Split(0 if labels is None else labels[0].size, multi_class, folds)
    with fits.naming_losses(client):
        partitions = fits.Partitions.made(
            client, blocks, split, labels, (kind, scale), same_lambda=model.lam is not None, seed=seed
        )
    posed = model._posed()
    plan = rounds.Training(
        loss=loss,
        C=resolve_C(posed.get("C"), posed.get("lam"), partitions.n)[0],
        n=partitions.n,
        problems=split.problems,
        n_features=partitions.n_features,
        tol=model.tol,
        passes=solver.passes,
        max_rounds=model.max_iter,
        max_time=model.max_time,
        seed=seed,
        uses_lambda=model.lam is not None,
        free=kind == "free",
        scale=scale,
        penalty=posed.get("penalty", L2()),
        share=posed.get("share", 1.0),
        joint=JOINT[multi_class].joint if multi_class in JOINT else None,
        vectors=split.vectors,
    )
    _set_columns(model, sources.feature_names(X), X, y, sample_weight)
    model.n_features_in_ = partitions.n_features
    return fits.ClusterFits(partitions, plan, solver, memory, functools.partial(_watch, model, rounds.narrate))


def checked(model: Any) -> tuple[Loss, Any, int]:
    """The loss, the solver on a cluster, and the bytes of rows that may be brought together on a worker.

    Raises
    ------
    ValueError
        An option is not one, or works on one machine only.
    """
    from saddlesvm.cluster.methods import cluster_solver

    multi_class = model.multi_class
    if model.C is not None and not isinstance(model.C, NUMBER):
        raise ValueError(f"C={model.C!r} works on one machine only: on a cluster, LinearSVCCV chooses C")
    for name, (usual, instead) in FOR_ONE_MACHINE.items():
        if getattr(model, name, usual) != usual:
            raise ValueError(f"{name}={getattr(model, name)!r} works on one machine only: {instead}")
    loss: Loss = loss_for(multi_class, model._check_options())
    if multi_class in JOINT and model.penalty != "l2":
        raise ValueError(f"multi_class={multi_class!r} supports penalty='l2' only; got {model.penalty!r}")
    return loss, cluster_solver(model.solver), MEMORY if model.memory is None else memory_bytes(model.memory)


def _learned(model: Any, classes: np.ndarray, sums: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """The classes, which the model learns, with the factors of their rows' weights, whose sums are given."""
    if classes.size < 2:
        raise ValueError(f"y holds {classes.size} class only: at least two are needed")
    check_classification_targets(np.repeat(classes, 3))  # a class a row would look like a regression
    if not sums.all():
        absent = classes.tolist()[int(np.argmin(sums))]
        raise ValueError(f"class {absent!r} has no row of positive weight: every class needs one")
    model.classes_ = classes
    vars(model).pop("indicator_", None)
    factors = None
    if model.class_weight is not None:
        factors = class_factors(model.class_weight, classes, np.arange(classes.size), sums)
    return classes, factors


def _set_columns(model: Any, names: Sequence[str] | None, X: Any, y: Any, sample_weight: Any) -> None:
    """Keep the names of a data frame's columns, and which columns of files are not features."""
    vars(model).pop("feature_names_in_", None)
    model._forget_data()
    if names is not None:
        model.feature_names_in_ = np.array(names, dtype=object)
    model._columns = (None, None)
    if isinstance(X, (list, tuple)) and not is_task(X[0]):
        model._columns = (y, sample_weight if isinstance(sample_weight, str) else None)


def _watch(model: Any, print_line: Callable[[dict[str, Any]], None], row: dict[str, Any]) -> bool:
    """Hand a round to the callbacks, and print it if requested; whether a callback asks to stop."""
    if model.verbose:
        print_line(row)
    asked = [callback(row) for callback in model.callbacks or ()]
    return any(asked)


def fit_on_cluster(model: Any, X: Any, y: Any, sample_weight: Any, given: dict[str, Any]) -> Any:
    """Fit a linear estimator to rows on a cluster; `given` are arguments of ``fit`` that go on one machine only.

    Raises
    ------
    ValueError
        Bad data or options.
    ClusterLostError
        The scheduler is lost, or there is no worker; ``error.model`` is the best model so far.
    """
    from saddlesvm.cluster.fits import ClusterLostError

    odd = [name for name, value in given.items() if value is not None]
    if odd:
        raise ValueError(f"{odd[0]} works on one machine only; leave it out where the rows are on a cluster")
    fits = begun(model, X, y, sample_weight)
    try:
        solution = fits.solution()
    except ClusterLostError as lost:
        if lost.solution is not None:
            lost.model = _kept(copy(model), fits, lost.solution)
            gap = lost.model.certificate_.relative_gap
            lost.args = (f"{lost}; the best model so far (.model) has a relative gap of {gap:.2g}",)
        raise
    return _kept(model, fits, solution, stacklevel=7)


def _kept(model: Any, fits: Any, solution: Any, stacklevel: int = 0) -> Any:
    """The model with a solution's weights, certificates and rounds; warns where none of it was certified."""
    plan, trace = fits.plan, trace_of(solution.trace, fits.plan.n)
    W = solution.W.reshape(len(solution.certificates), plan.vectors, -1)
    results = [
        FitResult(
            coef=w[:, :-1].copy(),
            intercept=w[:, -1] * plan.scale,
            alpha=np.empty(0),
            certificate=certificate,
            outcome=solution.outcome,
            tol=plan.tol,
            epochs=solution.rounds,
            rows_touched=plan.n * solution.rounds,
            seconds_solving=0.0 if k else solution.seconds,
            seconds_certifying=0.0,
            trace=Trace() if k else trace,
            reason=solution.reason,
        )
        for k, (w, certificate) in enumerate(zip(W, solution.certificates, strict=True))
    ]
    model._fitted_C = plan.C
    model._keep(results)
    if not is_classifier(model):
        model.coef_ = model.coef_[0]
    model.rounds_ = solution.trace
    if stacklevel:
        results[0].warn(stacklevel=stacklevel)
    return model


def trace_of(rounds: Sequence[dict[str, Any]], n: int) -> Trace:
    """The record of the rounds that had a model, for n rows, in the form that fits in memory have."""
    trace = Trace()
    for row in rounds:
        if np.isfinite(row["gap"]):
            figures = {name: row[name] for name in ("primal", "dual", "gap", "relative_gap")}
            figures |= {"epoch": row["round"], "rows_touched": n * row["round"], "seconds_solving": row["seconds"]}
            trace(Record(seconds_certifying=0.0, active=n, change=np.nan, remark="", coef=NO_WEIGHTS, **figures))
    return trace


def models_along(model: Any, X: Any, y: Any, Cs: np.ndarray, sample_weight: Any) -> tuple[list[Any], list[float]]:
    """A copy of `model` for each C, ascending, and the seconds of each fit; a fit begins where the last one ended."""
    fits, models, seconds = begun(model, X, y, sample_weight), [], []
    for C, solution in fits.along(Cs.tolist()):
        models.append(_kept(copy(model).set_params(C=C), fits, solution, stacklevel=7))
        seconds.append(solution.seconds)
    return models, seconds


def search_on_cluster(search: Any, template: Any, X: Any, y: Any, sample_weight: Any, Cs: np.ndarray) -> Any:
    """Cross-validation of a classifier over C: the models of all folds, and that of all rows, share every round.

    Sets the attributes of `search`, and returns the model of all rows for each C.

    Raises
    ------
    ValueError
        Bad data or options.
    """
    folds = 5 if search.cv is None else search.cv
    if isinstance(folds, bool) or not isinstance(folds, int) or folds < FEWEST_FOLDS:
        raise ValueError(f"cv must be a number of folds, at least {FEWEST_FOLDS}, on a cluster; got {folds!r}")
    if search.scoring not in (None, "accuracy"):
        raise ValueError(f"on a cluster folds are scored by accuracy: leave scoring out; got {search.scoring!r}")
    if search.drop is not None:
        raise ValueError("drop is for one machine: on a cluster all folds of a C share the rounds; leave it out")
    template.set_params(verbose=search.verbose or template.verbose)
    fits = begun(template, X, y, sample_weight, folds)
    kinds, models, scores, gaps = fits.partitions.split.kinds, [], [], []
    for C, solution in fits.along(Cs.tolist()):
        scores.append(fits.partitions.shares_right(solution.W))
        each = np.array([one.relative_gap for one in solution.certificates])
        gaps.append(each.reshape(-1, kinds)[:-1].max(axis=1))
        models.append(_kept(copy(template).set_params(C=C), fits, fits.of_all_rows(solution), stacklevel=6))
    search.Cs_ = Cs[: len(models)]  # those that there was time for
    search.scores_, search.relative_gaps_ = np.array(scores), np.array(gaps)
    search.rounds_ = np.array([model.n_iter_ for model in models])
    return models


def over_blocks(method: Method) -> Method:
    """Let a method that takes rows take those of a cluster or of a device, too.

    Its result is then a Dask array, not yet computed, or an array beside the rows.
    """

    @functools.wraps(method)
    def of_any_rows(model: Any, X: Any) -> Any:
        if is_on_device(X):
            found = method(model, X)
            return sent(found, X) if found.dtype.kind in "iuf" else found
        if not is_distributed(X):
            return method(model, X)
        from saddlesvm.cluster.sources import lazily

        check_is_fitted(model)
        width = X.shape[1] if len(getattr(X, "shape", ())) > 1 else model.n_features_in_
        if width != model.n_features_in_:
            name = type(model).__name__
            raise ValueError(
                f"X has {width} features, but {name} is expecting {model.n_features_in_} features as input"
            )
        light = copy(model)
        for name in NOT_SENT:
            vars(light).pop(name, None)
        light.callbacks = None
        like = method(light, np.zeros((1, model.n_features_in_)))[:0]
        columns = getattr(model, "_columns", (None, None))
        return lazily(X, functools.partial(method, light), like, columns)

    return cast(Method, of_any_rows)


def score_on_cluster(model: Any, X: Any, y: Any, sample_weight: Any) -> Any:
    """The accuracy, or the R2 of a regression, on rows of a cluster: a lazy Dask number."""
    from saddlesvm.cluster import sources

    score = sources.accuracy if is_classifier(model) else sources.r2
    return score(sources.as_array(y), model.predict(X), sample_weight)
