"""Fits and predictions of linear estimators whose rows are on a Dask cluster.

The estimators call this if X is a Dask array or DataFrame, or a list of blocks that workers
compute. Nothing of Dask is imported before that.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone, is_classifier
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from saddlesvm.cluster.tasks import is_task
from saddlesvm.estimators.base import Labels, Training, draw_seed, option_of
from saddlesvm.estimators.class_weights import class_factors
from saddlesvm.estimators.fitted import (
    Fitted,
    fitted_value,
    give_features,
    make_model,
)
from saddlesvm.estimators.solve import make_fitted
from saddlesvm.fit.outcome import FitResult, Record, Trace
from saddlesvm.multiclass.splits import JOINT, loss_for
from saddlesvm.problem.loss import Loss
from saddlesvm.problem.penalties import L2
from saddlesvm.problem.problem import resolve_C
from saddlesvm.rows.array_libraries import copy_to_device, is_on_device
from saddlesvm.rows.memory_plan import memory_bytes
from saddlesvm.runtime.allowed import NUMBER
from saddlesvm.runtime.data_types import LabelsLike, Matrix, RowsLike

if TYPE_CHECKING:
    from collections.abc import Mapping

    from saddlesvm.cluster.fits import Partitions
    from saddlesvm.cluster.method import ClusterPlan, Solution
    from saddlesvm.cluster.partition import Split
    from saddlesvm.estimators.base import Estimator

# Calls from the warning of a fit to the user's call of fit(), so that the warning names his line.
CALLS_TO_USER = 6
MEMORY = 2**28  # bytes of rows that are brought together on one worker, unless told otherwise
# Options that a fit on a cluster does not have: their defaults, and what there is instead.
FOR_ONE_MACHINE = {
    "warm_start": (False, "every fit begins anew"),
    "keep": ("best", "the best certified model is kept"),
    "gap": (0.0, "give tol, the relative gap"),
    "checkpoint": (None, "a fit continues after workers are lost; save() keeps a model"),
    "n_jobs": (None, "the threads of the workers do the work"),
}
Method = TypeVar("Method", bound=Callable[..., Any])
NO_WEIGHTS = np.empty(0)  # the record of a round has none


def is_distributed(X: Matrix) -> bool:
    """Return True if rows are on a cluster.

    They are a Dask collection, or a list of blocks that workers compute (delayed values or
    futures).
    """
    if hasattr(X, "__dask_graph__"):
        return True
    return isinstance(X, (list, tuple)) and bool(X) and all(map(is_task, X))


def refuse_cluster(X: Matrix, what: str, instead: str) -> None:
    """Raise ValueError if rows are on a cluster, where something is not available."""
    if is_distributed(X):
        raise ValueError(f"{what} takes rows of this machine; on a cluster {instead}")


def fit_on_cluster(
    template: Estimator,
    X: RowsLike,
    y: LabelsLike,
    sample_weight: ArrayLike | None,
    given: Mapping[str, object],
) -> Fitted:
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
    if not template._takes_clusters:
        raise ValueError(
            f"{type(template).__name__} takes rows of this machine; LinearSVC and LinearSVR take "
            "a cluster's"
        )
    odd = [name for name, value in given.items() if value is not None]
    if odd:
        raise ValueError(
            f"{odd[0]} works on one machine only; leave it out where the rows are on a cluster"
        )
    from saddlesvm.cluster import fits, method, partition, sources

    loss, solver, memory = check_options(template)
    client = fits.current_client()
    blocks = sources.part_tasks(X, y, sample_weight)

    # The classes of all partitions, and the partitions with the problems over them.
    labels = None
    if is_classifier(template):
        with fits.name_losses(client):
            classes, sums = fits.find_classes(client, blocks)
        labels = _weigh_classes(template, classes, sums)
    kind = template._intercept_kind()
    scale = {"none": 0.0, "free": 1.0}.get(kind, float(template.intercept_scaling))
    n_classes = 0 if labels is None else labels[0].size
    split = partition.Split(n_classes, option_of(template, "multi_class"))
    with fits.name_losses(client):
        partitions = fits.make_partitions(client, blocks, split, labels, (kind, scale))

    # What the models know besides.
    features: dict[str, Any] = {"n_features_in_": partitions.n_features}
    names = sources.feature_names(X)
    if names is not None:
        features["feature_names_in_"] = np.array(names, dtype=object)
    give_features(template, features)
    plan = make_plan(template, loss, partitions, split, scale)
    watch = functools.partial(_watch, template, method.print_round)
    known = None if labels is None else Labels(labels[0])
    try:
        solution = fits.solve(partitions, plan, solver, memory, watch)
    except fits.ClusterLostError as lost:
        if lost.solution is not None:
            lost.model = make_model(_fitted_of(template, plan, known, lost.solution))
            gap = lost.model.certificate_.relative_gap
            lost.args = (f"{lost}; the best model so far (.model) has a relative gap of {gap:.2g}",)
        raise
    return _fitted_of(template, plan, known, solution, stacklevel=CALLS_TO_USER)


def make_plan(
    template: Estimator, loss: Loss, partitions: Partitions, split: Split, scale: float
) -> ClusterPlan:
    """Return the problems over some partitions, and their limits."""
    from saddlesvm.cluster.method import ClusterPlan

    options = template._problem_options()
    return ClusterPlan(
        loss=loss,
        C=resolve_C(options.get("C"), options.get("lam"), partitions.n)[0],
        n=partitions.n,
        problems=split.n_problems,
        n_features=partitions.n_features,
        tol=template.tol,
        max_rounds=template.max_iter,
        max_time=template.max_time,
        seed=draw_seed(template.random_state),
        uses_lambda=template.lam is not None,
        free=template._intercept_kind() == "free",
        scale=scale,
        penalty=options.get("penalty", L2()),
        share=options.get("share", 1.0),
        is_joint=split.multi_class in JOINT,
        vectors=split.n_vectors,
    )


def check_options(model: Estimator) -> tuple[Loss, str, int]:
    """Return the loss, the solver, and the bytes of rows that may be brought together on a worker.

    Raises
    ------
    ValueError
        An option is not one, or works on one machine only.
    """
    from saddlesvm.cluster.choice import check_cluster_solver

    multi_class = option_of(model, "multi_class")
    if model.C is not None and not isinstance(model.C, NUMBER):
        raise ValueError(
            f"C={model.C!r} works on one machine only: on a cluster fit a model for each C, and "
            "compare their scores for other rows"
        )
    for name, (usual, instead) in FOR_ONE_MACHINE.items():
        given = getattr(model, name, usual)
        if given != usual:
            raise ValueError(f"{name}={given!r} works on one machine only: {instead}")
    loss: Loss = loss_for(multi_class, model._check_options())
    if multi_class in JOINT and model.penalty != "l2":
        raise ValueError(
            f"multi_class={multi_class!r} supports penalty='l2' only; got {model.penalty!r}"
        )
    if multi_class == "ovo" and model.lam is not None:
        raise ValueError(
            f"lam={model.lam!r} with multi_class='ovo' works on one machine only: give C"
        )
    memory = MEMORY if model.memory is None else memory_bytes(model.memory)
    return loss, check_cluster_solver(model.solver), memory


def _weigh_classes(
    template: Estimator, classes: np.ndarray, sums: np.ndarray
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the classes, with the factors of their rows' weights, whose sums are given."""
    if classes.size < 2:
        raise ValueError(f"y holds {classes.size} class only: at least two are needed")
    # Repeated, because a class a row would look like a regression.
    check_classification_targets(np.repeat(classes, 3))
    if not sums.all():
        absent = classes.tolist()[int(np.argmin(sums))]
        raise ValueError(f"class {absent!r} has no row of positive weight: every class needs one")
    factors = None
    class_weight = option_of(template, "class_weight")
    if class_weight is not None:
        factors = class_factors(class_weight, classes, np.arange(classes.size), sums)
    return classes, factors


def _watch(
    model: Estimator, print_line: Callable[[dict[str, Any]], None], row: dict[str, Any]
) -> bool:
    """Hand a round to the callbacks, and print it if requested; return True if one asks to stop."""
    if model.verbose:
        print_line(row)
    asked = [callback(row) for callback in model.callbacks or ()]
    return any(asked)


def _fitted_of(
    template: Estimator,
    plan: ClusterPlan,
    labels: Labels | None,
    solution: Solution,
    stacklevel: int = 0,
) -> Fitted:
    """Return the :class:`Fitted` of a solution; warn at a stack level, if any, of a missed gap."""
    trace = make_trace(solution.trace, plan.n)
    W: Any = solution.W.reshape(len(solution.certificates), plan.vectors, -1)
    results: list[FitResult] = []
    for w, certificate in zip(W, solution.certificates, strict=True):
        # The problems shared the rounds, which count for the first one.
        result = FitResult(
            coef=w[:, :-1].copy(),
            intercept=w[:, -1] * plan.scale,
            alpha=np.empty(0),
            certificate=certificate,
            outcome=solution.outcome,
            tol=plan.tol,
            epochs=solution.rounds,
            rows_touched=plan.n * solution.rounds,
            seconds_solving=0.0 if results else solution.seconds,
            seconds_certifying=0.0,
            trace=Trace() if results else trace,
            reason=solution.reason,
        )
        results.append(result)
    if stacklevel:
        results[0].warn(stacklevel=stacklevel)
    training = Training((), plan.loss, None, labels)
    return make_fitted(
        template,
        training,
        results,
        plan.n,
        plan.C,
        single_target=labels is None,
    )


def make_trace(rounds: Sequence[dict[str, Any]], n: int) -> Trace:
    """Return the rounds that had a model as the trace of a fit in memory to n rows."""
    trace = Trace()
    for row in rounds:
        if not np.isfinite(row["gap"]):
            continue
        record = Record(
            epoch=row["round"],
            rows_touched=n * row["round"],
            seconds_solving=row["seconds"],
            seconds_certifying=0.0,
            primal=row["primal"],
            dual=row["dual"],
            gap=row["gap"],
            relative_gap=row["relative_gap"],
            active=n,
            change=np.nan,
            remark="",
            coef=NO_WEIGHTS,
        )
        trace(record)
    return trace


def apply_to_any_rows(method: Method) -> Method:
    """Let a method that takes rows take rows of a cluster or of a device, too.

    Its result is then a Dask array, not yet computed, or an array beside the rows.
    """

    @functools.wraps(method)
    def apply_anywhere(model: Estimator, X: Matrix) -> Any:
        # Numbers go back to the device of the rows; labels may be text, which stays here.
        if is_on_device(X):
            found = method(model, X)
            return copy_to_device(found, X) if found.dtype.kind in "iuf" else found
        if not is_distributed(X):
            return method(model, X)
        from saddlesvm.cluster.sources import apply_lazily

        check_is_fitted(model)
        if isinstance(X, (list, tuple)):
            raise ValueError(
                "predictions for a list of delayed blocks are tasks of your own: "
                f"[dask.delayed(model.{method.__name__})(block) for block in blocks]"
            )
        width = X.shape[1]
        if width != model.n_features_in_:
            name = type(model).__name__
            raise ValueError(
                f"X has {width} features, but {name} is expecting {model.n_features_in_} features "
                "as input"
            )
        # Workers get the weights, and nothing that grows with rows, rounds or features' names.
        fitted = fitted_value(model)
        bare = clone(fitted.template).set_params(callbacks=None)
        give_features(bare, {"n_features_in_": model.n_features_in_})
        small = replace(fitted, template=bare, trace=None, duals=None)
        light = make_model(replace(small, choice=None, data=None))
        # A prediction of no rows shows Dask the type and the shape of the others.
        like = method(light, np.zeros((1, model.n_features_in_)))[:0]
        return apply_lazily(X, functools.partial(method, light), like)

    return cast(Method, apply_anywhere)
