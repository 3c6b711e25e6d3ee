"""Fits, paths, folds and predictions of linear estimators whose rows are on a Dask cluster.

The estimators call this where X is a Dask array or DataFrame, or a list of files that the workers read. Nothing of Dask
is imported before that.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone, is_classifier
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from saddlesvm.cluster.tasks import is_task
from saddlesvm.data.inputs import are_stores
from saddlesvm.data.store import Store
from saddlesvm.estimators.base import Labels, Training, draw_seed
from saddlesvm.estimators.class_weights import class_factors
from saddlesvm.estimators.fitted import (
    Fitted,
    copy_options,
    fitted_value,
    give_features,
    make_model,
)
from saddlesvm.estimators.solve import gather
from saddlesvm.fit.outcome import FitResult, Record, Trace
from saddlesvm.multiclass.splits import JOINT, loss_for
from saddlesvm.problem.loss import Loss
from saddlesvm.problem.penalties import L2
from saddlesvm.problem.problem import resolve_C
from saddlesvm.rows.device import is_on_device, sent
from saddlesvm.rows.memory_plan import memory_bytes
from saddlesvm.runtime.allowed import NUMBER

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


class Begun(NamedTuple):
    """Fits over the partitions of a cluster, and what their models know besides the weights.

    Attributes
    ----------
    template : LinearModel
        The parameters; it knows the features.
    fits : ClusterFits
    labels : Labels or None
    columns : tuple
        The columns of files that hold labels and weights; None if there are none.
    """

    template: Any
    fits: Any
    labels: Labels | None
    columns: tuple[Any, Any]


def begin_fits(template: Any, X: Any, y: Any, sample_weight: ArrayLike | None, folds: int = 0) -> Begun:
    """Begin the fits of the problems of a template over the partitions of X.

    Raises
    ------
    ValueError
        Bad data or options, or options that go on one machine only.
    ClusterLostError
        Rows are lost that cannot be computed again.
    """
    from saddlesvm.cluster import fits, part, rounds, sources

    model = template
    (loss, solver, memory), multi_class = checked(model), model.multi_class
    blocks, client = sources.part_tasks(X, y, sample_weight), fits.client_in_force()
    labels = None
    if is_classifier(model):
        with fits.naming_losses(client):
            found = fits.classes_and_weights(client, blocks)
        labels = _weigh_found(model, *found)
    kind, seed = model._intercept_kind(), draw_seed(model.random_state)
    scale = 0.0 if kind == "none" else 1.0 if kind == "free" else float(model.intercept_scaling)
    split = part.Split(0 if labels is None else labels[0].size, multi_class, folds)
    with fits.naming_losses(client):
        partitions = fits.Partitions.made(
            client, blocks, split, labels, (kind, scale), same_lambda=model.lam is not None, seed=seed
        )
    posed = model._problem_options()
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
    names = sources.feature_names(X)
    features: dict[str, Any] = {"n_features_in_": partitions.n_features}
    if names is not None:
        features["feature_names_in_"] = np.array(names, dtype=object)
    give_features(template, features)
    columns: tuple[Any, Any] = (None, None)
    if isinstance(X, (list, tuple)) and not is_task(X[0]):
        columns = (y, sample_weight if isinstance(sample_weight, str) else None)
    watch = functools.partial(_watch, model, rounds.narrate)
    found_fits = fits.ClusterFits(partitions, plan, solver, memory, watch)
    return Begun(template, found_fits, None if labels is None else Labels(labels[0]), columns)


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


def _weigh_found(template: Any, classes: np.ndarray, sums: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the classes, with the factors of their rows' weights, whose sums are given."""
    if classes.size < 2:
        raise ValueError(f"y holds {classes.size} class only: at least two are needed")
    check_classification_targets(np.repeat(classes, 3))  # a class a row would look like a regression
    if not sums.all():
        absent = classes.tolist()[int(np.argmin(sums))]
        raise ValueError(f"class {absent!r} has no row of positive weight: every class needs one")
    factors = None
    if template.class_weight is not None:
        factors = class_factors(template.class_weight, classes, np.arange(classes.size), sums)
    return classes, factors


def _watch(model: Any, print_line: Callable[[dict[str, Any]], None], row: dict[str, Any]) -> bool:
    """Hand a round to the callbacks, and print it if requested; whether a callback asks to stop."""
    if model.verbose:
        print_line(row)
    asked = [callback(row) for callback in model.callbacks or ()]
    return any(asked)


def fit_on_cluster(template: Any, X: Any, y: Any, sample_weight: ArrayLike | None, given: dict[str, Any]) -> Fitted:
    """Fit a linear model to rows on a cluster.

    Parameters
    ----------
    template : LinearModel
        The parameters, not fitted.
    X, y, sample_weight
        As in :meth:`saddlesvm.LinearSVC.fit`.
    given : dict
        Arguments of ``fit`` that work on one machine only.

    Raises
    ------
    ValueError
        Bad data or options.
    ClusterLostError
        The scheduler is lost, or there is no worker; ``error.model`` is the best model so far.
    """
    from saddlesvm.cluster.fits import ClusterLostError

    if not template._takes_clusters:
        raise ValueError(
            f"{type(template).__name__} takes rows of this machine; LinearSVC and LinearSVR take a cluster's"
        )
    odd = [name for name, value in given.items() if value is not None]
    if odd:
        raise ValueError(f"{odd[0]} works on one machine only; leave it out where the rows are on a cluster")
    begun = begin_fits(template, X, y, sample_weight)
    try:
        solution = begun.fits.solution()
    except ClusterLostError as lost:
        if lost.solution is not None:
            lost.model = make_model(_gather(begun, lost.solution))
            gap = lost.model.certificate_.relative_gap
            lost.args = (f"{lost}; the best model so far (.model) has a relative gap of {gap:.2g}",)
        raise
    return _gather(begun, solution, stacklevel=6)


def _gather(begun: Begun, solution: Any, template: Any = None, stacklevel: int = 0) -> Fitted:
    """Return what a solution leaves behind; warn, at a `stacklevel`, if it was not certified.

    A `template` takes the place of the one of the fits.
    """
    plan = begun.fits.plan
    template = begun.template if template is None else template
    trace = trace_of(solution.trace, plan.n)
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
    if stacklevel:
        results[0].warn(stacklevel=stacklevel)
    posed = Training((), plan.loss, None, begun.labels)
    return gather(
        template,
        posed,
        results,
        plan.n,
        single_target=begun.labels is None,
        rounds=solution.trace,
        columns=begun.columns,
    )


def trace_of(rounds: Sequence[dict[str, Any]], n: int) -> Trace:
    """The record of the rounds that had a model, for n rows, in the form that fits in memory have."""
    trace = Trace()
    for row in rounds:
        if np.isfinite(row["gap"]):
            figures = {name: row[name] for name in ("primal", "dual", "gap", "relative_gap")}
            figures |= {"epoch": row["round"], "rows_touched": n * row["round"], "seconds_solving": row["seconds"]}
            trace(Record(seconds_certifying=0.0, active=n, change=np.nan, remark="", coef=NO_WEIGHTS, **figures))
    return trace


def models_along(template: Any, X: Any, y: Any, Cs: np.ndarray, sample_weight: ArrayLike | None) -> tuple[list[Any], list[float]]:
    """Return a model for each C, ascending, and the seconds of each fit.

    A fit begins where the last one ended.
    """
    begun = begin_fits(copy_options(template), X, y, sample_weight)
    models = []
    seconds = []
    for C, solution in begun.fits.along(Cs.tolist()):
        own = copy_options(begun.template, C=C)
        models.append(make_model(_gather(begun, solution, own, stacklevel=7)))
        seconds.append(solution.seconds)
    return models, seconds


class Searched(NamedTuple):
    """What a cross-validation on a cluster found, up to the C that there was time for.

    Attributes
    ----------
    fits : list of Fitted
        To all rows, for each C.
    scores, gaps : ndarray of shape (k, folds)
    """

    fits: list[Fitted]
    scores: np.ndarray
    gaps: np.ndarray


def search_on_cluster(template: Any, folds: Any, X: Any, y: Any, sample_weight: ArrayLike | None, Cs: np.ndarray) -> Searched:
    """Cross-validate a classifier over C: the models of all folds and rows share every round.

    Raises
    ------
    ValueError
        Bad data or options.
    """
    folds = 5 if folds is None else folds
    if isinstance(folds, bool) or not isinstance(folds, int) or folds < FEWEST_FOLDS:
        raise ValueError(f"cv must be a number of folds, at least {FEWEST_FOLDS}, on a cluster; got {folds!r}")
    begun = begin_fits(template, X, y, sample_weight, folds)
    partitions = begun.fits.partitions
    fits = []
    scores = []
    gaps = []
    for C, solution in begun.fits.along(Cs.tolist()):
        scores.append(partitions.shares_right(solution.W))
        each = np.array([one.relative_gap for one in solution.certificates])
        gaps.append(each.reshape(-1, partitions.split.kinds)[:-1].max(axis=1))
        own = copy_options(begun.template, C=C)
        fits.append(_gather(begun, begun.fits.of_all_rows(solution), own, stacklevel=6))
    return Searched(fits, np.array(scores), np.array(gaps))


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
        # Workers get the weights, and nothing that grows with rows, rounds or features' names.
        fitted = fitted_value(model)
        bare = clone(fitted.template).set_params(callbacks=None)
        give_features(bare, {"n_features_in_": model.n_features_in_})
        light = make_model(replace(fitted, template=bare, trace=None, duals=None, rounds=None, choice=None, data=None))
        like = method(light, np.zeros((1, model.n_features_in_)))[:0]
        return lazily(X, functools.partial(method, light), like, fitted.columns)

    return cast(Method, of_any_rows)


def score_anywhere(score: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that scores rows here as `score` does, and rows of a cluster lazily."""

    def score_rows(self: Any, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Any:
        """Accuracy, or R2 of a regression; of rows on a cluster a lazy Dask number.

        Parameters
        ----------
        X : array-like, sparse matrix, or Dask array or DataFrame of shape (n, d)
        y : array-like or Dask array of shape (n,)
        sample_weight : like y, optional
        """
        if not is_distributed(X):
            return score(self, X, y, sample_weight)
        from saddlesvm.cluster import sources

        measure = sources.accuracy if is_classifier(self) else sources.r2
        return measure(sources.as_array(y), self.predict(X), sample_weight)

    score_rows.__name__ = "score"
    score_rows.__qualname__ = "score"
    return score_rows
