"""The base of a cluster's estimators: the fit on partitions, the attributes it sets, and scores that stay lazy."""

from __future__ import annotations

import functools
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import dask
import numpy as np
from distributed import Client, default_client
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from saddlesvm.cluster.dask_engine import ClusterLostError, DaskEngine
from saddlesvm.cluster.lazily import lazily
from saddlesvm.cluster.methods import Method, chosen
from saddlesvm.cluster.mixing import alike, census, mixed
from saddlesvm.cluster.one_worker import MEMORY, part_bytes
from saddlesvm.cluster.part import make_part, rows_of_problems, weighed
from saddlesvm.cluster.rounds import Rounds, Solution, Training, narrate
from saddlesvm.cluster.sources import PartTasks
from saddlesvm.cluster.splits import Split
from saddlesvm.fit.outcome import NotCertifiedWarning, Outcome
from saddlesvm.fit.result import uncertified
from saddlesvm.multiclass.splits import JOINT
from saddlesvm.problem.certificate import Certificate
from saddlesvm.problem.loss import Loss
from saddlesvm.problem.penalties import L2
from saddlesvm.problem.problem import resolve_C
from saddlesvm.rows import layouts as rows
from saddlesvm.rows.memory_plan import memory_bytes
from saddlesvm.runtime.allowed import NUMBER
from saddlesvm.runtime.internal import PublicDir, internal
from saddlesvm.runtime.interrupt import interruptible
from saddlesvm.runtime.randomness import seed_of
from saddlesvm.runtime.words import CLUSTER_SOLVERS, Intercept

DIMENSIONS = 2  # of an array of rows


class Prepared(NamedTuple):
    """A fit that may begin: the client, the partitions as futures, what to solve, bytes of all rows, the split, and
    what is left on the workers for the fits that follow."""

    client: Client
    parts: list[Any]
    plan: Training
    n_bytes: int
    split: Split
    kept: dict[Any, Any]

    def of_all_rows(self, solution: Solution) -> Solution:
        """The part of a solution that left no fold out."""
        first = self.split.folds * self.split.kinds
        return replace(solution, W=solution.W[first * self.split.vectors :], certificates=solution.certificates[first:])


@contextmanager
def whole_or_not_at_all(estimator: Any) -> Iterator[None]:
    """Let a fit that raises leave the estimator as it was, unless the cluster was lost on the way to a model."""
    before = dict(vars(estimator))
    try:
        yield
    except ClusterLostError:
        raise
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


class DistributedModel(PublicDir, BaseEstimator):
    """What both estimators share: the fit on partitions, and scores that stay lazy."""

    C: float
    lam: float | None
    tol: float
    fit_intercept: bool
    intercept: Intercept
    intercept_scaling: float
    max_iter: int | None
    max_time: float | None
    passes: float
    solver: str
    random_state: Any
    verbose: int
    callbacks: Sequence[Callable[[dict[str, Any]], Any]] | None
    client: Client | None
    memory: int | str | None
    top_k: int
    coef_: Any
    intercept_: Any
    n_features_in_: int
    _n: int
    _columns: tuple[Any, Any]  # of files: those of the labels and of the row weights

    def _template(self) -> Any:
        """The estimator in memory with the options of this one, by whose rules they are checked."""
        raise NotImplementedError

    def _options_for(self, kind: Any) -> dict[str, Any]:
        """The options that an estimator in memory has, too."""
        return {name: getattr(self, name) for name in self._get_param_names() if name in kind._get_param_names()}

    def __sklearn_clone__(self) -> DistributedModel:
        """A new estimator with copies of the options, and the same client."""
        options = {name: one if name == "client" else clone(one, safe=False) for name, one in self.get_params().items()}
        return type(self)(**options)

    def __getstate__(self) -> dict[str, Any]:
        """What is kept in a file: all but the connection to the cluster."""
        return super().__getstate__() | {"client": None}

    def _client(self) -> Client:
        if self.client is not None:
            return self.client
        try:
            return default_client()
        except ValueError:
            raise ValueError(
                "no Dask client: make one first (from distributed import Client; Client('tcp://host:port'), or "
                "Client() for this machine), or pass client="
            ) from None

    def _run(self, prepared: Prepared) -> None:
        """Run the rounds, and keep the solution."""
        began = time.perf_counter()
        solution = self._solution(prepared)
        self._keep(solution, began)
        self._warn(solution)

    @internal
    def check_options(self) -> Loss:
        """The loss; every option that does not depend on the data is checked.

        Raises
        ------
        ValueError
            An option is not one, or goes on one machine only.
        """
        if isinstance(self.C, str) or not isinstance(self.C, (NUMBER, type(None))):
            raise ValueError(f"C={self.C!r} is chosen on one machine; on a cluster take saddlesvm.dask.LinearSVCCV")
        loss: Loss = self._template().check_options()
        if not self.passes > 0.0:
            raise ValueError(f"passes must be positive; got {self.passes!r}")
        if self.solver not in CLUSTER_SOLVERS:
            raise ValueError(f"solver must be one of {', '.join(map(repr, CLUSTER_SOLVERS))}; got {self.solver!r}")
        self._memory()
        return loss

    def _prepared(
        self,
        blocks: list[PartTasks],
        loss: Loss,
        classes: np.ndarray | None,
        factors: np.ndarray | None,
        folds: int = 0,
    ) -> Prepared:
        """The partitions on the workers, and what to solve over them."""
        client, template, seed = self._client(), self._template(), seed_of(self.random_state)
        kind = template._intercept_kind()
        scale = 0.0 if kind == "none" else 1.0 if kind == "free" else float(self.intercept_scaling)
        split = Split(0 if classes is None else classes.size, getattr(self, "multi_class", "ovr"), folds)
        how = {"multi_class": split.multi_class, "folds": folds, "seed": seed}
        make = functools.partial(dask.delayed(make_part, pure=False), **how)
        tasks = [make(X, y, s, classes, scale, kind, factors, place=place) for place, (X, y, s) in enumerate(blocks)]
        parts = client.compute(tasks)
        shapes = np.array(client.gather([client.submit(shape_of, part) for part in parts]))
        n, widths = int(shapes[:, 0].sum()), np.unique(shapes[shapes[:, 0] > 0, 1])
        if widths.size != 1:
            raise ValueError(f"the partitions must have the same number of features; found {widths.tolist()}")
        if self.lam is not None and split.has_subsets(0):
            parts = same_lambda(client, parts, n)
        posed = template._posed()
        C, _ = resolve_C(posed.get("C"), posed.get("lam"), n)
        plan = Training(
            loss=loss,
            C=C,
            n=n,
            problems=split.problems,
            n_features=int(widths[0]),
            tol=self.tol,
            passes=self.passes,
            max_rounds=self.max_iter,
            max_time=self.max_time,
            seed=seed,
            uses_lambda=self.lam is not None,
            free=kind == "free",
            scale=scale,
            penalty=posed.get("penalty", L2()),
            share=posed.get("share", 1.0),
            joint=JOINT[split.multi_class].kind(self.top_k) if split.joint else None,
            vectors=split.vectors,
        )
        self.n_features_in_, self._n, self._scale = int(widths[0]), n, scale
        return Prepared(client, parts, plan, int(shapes[:, 2].sum()), split, {})

    def _solution(self, prepared: Prepared, start: np.ndarray | None = None) -> Solution:
        """The solution by the method that suits; begun at the weights of `start` where the method can."""
        plan, n_bytes, parts = prepared.plan, prepared.n_bytes, prepared.parts
        began = time.perf_counter()
        choice = chosen(self.solver, plan, n_bytes, self._memory(), len(parts))
        solution = self._carried_out(prepared, functools.partial(choice, start=start))
        last = choice is Rounds or self.solver != "auto" or plan.free
        if last or solution.outcome is not Outcome.NO_PROGRESS:
            return solution
        rest = plan.max_time and max(plan.max_time - (time.perf_counter() - began), 0.01)
        other = self._carried_out(prepared._replace(plan=replace(plan, max_time=rest)), Rounds)
        other.trace[:0] = solution.trace
        return replace(other, rounds=solution.rounds + other.rounds)

    def _carried_out(self, prepared: Prepared, choice: Method) -> Solution:
        """What a method makes of the partitions; the best model so far where the cluster is lost."""
        client, parts, plan = prepared.client, prepared.parts, prepared.plan
        began = time.perf_counter()
        if getattr(choice, "func", choice) is Rounds:
            parts = _mixed_where_alike(client, parts, plan.seed)
        engine = DaskEngine(client, parts, plan.problems, prepared.kept)
        run = choice(plan, engine, self._watch)
        try:
            with interruptible() as stop:
                engine.stop = stop
                return run.run(stop)
        except ClusterLostError as lost:
            self._keep(prepared.of_all_rows(run.solution(Outcome.INTERRUPTED)), began)
            lost.model = self
            gap = self.certificate_.relative_gap
            lost.args = (f"{lost}; the best model so far (.model) has a relative gap of {gap:.2g}",)
            raise
        except BaseException:
            engine.halt()
            raise

    def _memory(self) -> int:
        """Bytes of rows that may be brought together on a worker."""
        return MEMORY if self.memory is None else memory_bytes(self.memory)

    def _watch(self, row: dict[str, Any]) -> bool:
        """Tell of a round; whether a callback asks to stop."""
        if self.verbose:
            narrate(row)
        asked = [callback(row) for callback in self.callbacks or ()]
        return any(asked)

    def _along(self, prepared: Prepared, Cs: Sequence[float]) -> Iterator[tuple[float, Solution]]:
        """A solution for each C, ascending; each is begun at the last one's weights, over the same partitions.

        It ends with Ctrl-C, and where the time is over that `max_time` allows for all.
        """
        start, began, limit = None, time.perf_counter(), self.max_time
        for C in sorted(float(one) for one in Cs):
            left = None if limit is None else limit - (time.perf_counter() - began)
            if start is not None and left is not None and left <= 0.0:
                return
            plan = replace(prepared.plan, C=C / prepared.plan.share, max_time=left)
            solution = self._solution(prepared._replace(plan=plan), start)
            start = solution.W
            yield C, solution
            if solution.outcome is Outcome.INTERRUPTED:
                return

    def _keep(self, solution: Solution, began: float) -> None:
        self.coef_ = solution.W[:, :-1].copy()
        self.intercept_ = solution.W[:, -1] * self._scale
        self.certificates_ = solution.certificates
        self.certificate_ = Certificate.total(solution.certificates)
        self.outcome_, self.n_iter_, self.trace_ = solution.outcome, solution.rounds, solution.trace
        self.seconds_ = time.perf_counter() - began

    def _warn(self, solution: Solution) -> None:
        if solution.outcome is Outcome.CERTIFIED or self.tol == 0.0:
            return
        said = uncertified(solution.outcome, solution.reason, Certificate.total(solution.certificates), self.tol)
        warnings.warn(said, NotCertifiedWarning, stacklevel=4)

    def _lazily(self, X: Any, function: Callable[..., np.ndarray], dtype: Any, columns: int) -> Any:
        """`function` of the blocks of X; see :func:`~saddlesvm.cluster.lazily.lazily`."""
        check_is_fitted(self)
        width = np.shape(X)[1] if len(getattr(X, "shape", ())) == DIMENSIONS else self.n_features_in_
        if width != self.n_features_in_:
            raise ValueError(
                f"X has {width} features, but {type(self).__name__} is expecting {self.n_features_in_} features as "
                "input"
            )
        return lazily(X, function, dtype, columns, self._columns)


def _mixed_where_alike(client: Client, parts: list[Any], seed: int) -> list[Any]:
    """The partitions, mixed where each holds rows that are all alike."""
    told = client.gather([client.submit(classes_and_census, part) for part in parts])
    if not alike(np.array([found for _, found in told]), max(classes for classes, _ in told)):
        return parts
    return mixed(parts, seed, functools.partial(client.submit, pure=False))


def classes_and_census(part: Any) -> tuple[int, np.ndarray]:
    """The number of classes, and the census of a partition."""
    return part.classes, census(part)


def same_lambda(client: Client, parts: list[Any], n: int) -> list[Any]:
    """The partitions with factors for which the C of all n rows means the same lambda for problems over fewer rows."""
    counts = np.sum(client.gather([client.submit(rows_of_problems, part) for part in parts]), axis=0)
    return [client.submit(weighed, part, n / np.maximum(counts, 1), pure=False) for part in parts]


def shape_of(part: Any) -> tuple[int, int, int]:
    """Rows, features and bytes of a partition."""
    return part.size, rows.n_features(part.X), part_bytes(part)
