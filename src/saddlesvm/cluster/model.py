"""The base of a cluster's estimators: the fit on partitions, the attributes it sets, and scores that stay lazy."""

from __future__ import annotations

import functools
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import dask
import dask.array as da
import numpy as np
from distributed import Client, default_client
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from saddlesvm.cluster.dask_engine import ClusterLostError, DaskEngine
from saddlesvm.cluster.methods import Method, chosen
from saddlesvm.cluster.mixing import alike, census, mixed
from saddlesvm.cluster.one_worker import MEMORY, part_bytes
from saddlesvm.cluster.part import as_matrix, make_part
from saddlesvm.cluster.rounds import Rounds, Solution, Training, narrate
from saddlesvm.cluster.sources import PartTasks, read_part
from saddlesvm.cluster.splits import Split
from saddlesvm.fit.outcome import NotCertifiedWarning, Outcome
from saddlesvm.fit.result import uncertified
from saddlesvm.problem.certificate import Certificate
from saddlesvm.problem.intercepts import INTERCEPTS, InterceptName, intercept_kind
from saddlesvm.problem.loss import Loss
from saddlesvm.problem.problem import resolve_C
from saddlesvm.rows import layouts as rows
from saddlesvm.rows.memory_plan import memory_bytes
from saddlesvm.runtime.interrupt import interruptible
from saddlesvm.runtime.randomness import seed_of
from saddlesvm.runtime.words import Intercept

SOLVERS = ("auto", "newton", "rounds", "gather")


class Prepared(NamedTuple):
    """A fit that may begin: the client, the partitions as futures, what to solve, bytes of all rows, and the split."""

    client: Client
    parts: list[Any]
    plan: Training
    n_bytes: int
    split: Split


class DistributedModel(BaseEstimator):
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
    coef_: Any
    intercept_: Any

    def _kind(self) -> InterceptName:
        if not self.fit_intercept:
            return "none"
        if self.intercept not in INTERCEPTS:
            raise ValueError(f"intercept must be 'regularized', 'free' or 'none'; got {self.intercept!r}")
        return intercept_kind(self.intercept).name

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

    def _settle(self, prepared: Prepared) -> None:
        """Run the rounds, and keep the solution."""
        began = time.perf_counter()
        solution = self._solution(prepared)
        self._keep(solution, began)
        self._warn(solution)

    def _prepared(
        self,
        blocks: list[PartTasks],
        loss: Loss,
        classes: np.ndarray | None,
        factors: np.ndarray | None,
        folds: int = 0,
    ) -> Prepared:
        """The partitions on the workers, and what to solve over them."""
        if not (self.passes > 0.0 and self.tol >= 0.0):
            raise ValueError(f"passes must be positive and tol not negative; got {self.passes!r} and {self.tol!r}")
        if self.solver not in SOLVERS:
            raise ValueError(f"solver must be one of {', '.join(map(repr, SOLVERS))}; got {self.solver!r}")
        client, kind, seed = self._client(), self._kind(), seed_of(self.random_state)
        free = kind == "free"
        scale = 0.0 if kind == "none" else 1.0 if free else float(self.intercept_scaling)
        split = Split(0 if classes is None else classes.size, self._pairs(), folds)
        make = functools.partial(dask.delayed(make_part, pure=False), pairs=split.pairs, folds=folds, seed=seed)
        tasks = [make(X, y, s, classes, scale, kind, factors, place=place) for place, (X, y, s) in enumerate(blocks)]
        parts = client.compute(tasks)
        shapes = np.array(client.gather([client.submit(shape_of, part) for part in parts]))
        n, widths = int(shapes[:, 0].sum()), np.unique(shapes[shapes[:, 0] > 0, 1])
        if widths.size != 1:
            raise ValueError(f"the partitions must have the same number of features; found {widths.tolist()}")
        if (self.lam is not None and split.problems > split.kinds) or (self.lam is not None and split.pairs):
            raise ValueError("on a cluster pairs of classes and folds, which have rows of their own, take C, not lam")
        C, _ = resolve_C(None if self.lam is not None else self.C, self.lam, n)
        plan = Training(
            loss, C, n, split.problems, int(widths[0]), self.tol, self.passes, self.max_iter, self.max_time,
            seed, self.lam is not None, free, scale,
        )  # fmt: skip
        self.n_features_in_, self._scale = int(widths[0]), scale
        return Prepared(client, parts, plan, int(shapes[:, 2].sum()), split)

    def _solution(self, prepared: Prepared, start: np.ndarray | None = None) -> Solution:
        """The solution by the method that suits; begun at the weights of `start` where the method can."""
        client, parts, plan, n_bytes, _ = prepared
        began = time.perf_counter()
        choice = chosen(self.solver, plan, n_bytes, self._memory(), len(parts))
        solution = self._carried_out(client, parts, plan, functools.partial(choice, start=start))
        if solution.outcome is not Outcome.NO_PROGRESS or choice is Rounds or self.solver != "auto":
            return solution
        rest = plan.max_time and max(plan.max_time - (time.perf_counter() - began), 0.01)
        other = self._carried_out(client, parts, replace(plan, max_time=rest), Rounds)
        other.trace[:0] = solution.trace
        return replace(other, rounds=solution.rounds + other.rounds)

    def _pairs(self) -> bool:
        """Whether each class is told from each other one."""
        return False

    def _carried_out(self, client: Client, parts: list[Any], plan: Training, choice: Method) -> Solution:
        """What a method makes of the partitions; the best model so far where the cluster is lost."""
        began = time.perf_counter()
        if getattr(choice, "func", choice) is Rounds:
            parts = _mixed_where_alike(client, parts, plan.seed)
        engine = DaskEngine(client, parts, plan.problems)
        run = choice(plan, engine, self._watch)
        try:
            with interruptible() as stop:
                engine.stop = stop
                return run.run(stop)
        except ClusterLostError as lost:
            self._keep(run.solution(Outcome.INTERRUPTED), began)
            lost.model = self
            gap = self.certificate_.relative_gap
            lost.args = (f"{lost}; the best model so far (.model) has a relative gap of {gap:.2g}",)
            raise

    def _memory(self) -> int:
        """Bytes of rows that may be brought together on a worker."""
        return MEMORY if self.memory is None else memory_bytes(self.memory)

    def _watch(self, row: dict[str, Any]) -> None:
        if self.verbose:
            narrate(row)
        for callback in self.callbacks or ():
            callback(row)

    def _along(self, prepared: Prepared, Cs: Sequence[float]) -> Iterator[tuple[float, Solution]]:
        """A solution for each C, ascending; each is begun at the last one's weights, over the same partitions."""
        start = None
        for C in sorted(float(one) for one in Cs):
            solution = self._solution(prepared._replace(plan=replace(prepared.plan, C=C)), start)
            start = solution.W
            yield C, solution

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
        """`function` of the blocks of X: a Dask array for Dask input, and at once for data in memory."""
        check_is_fitted(self)
        if isinstance(X, (list, tuple)):
            shape = (np.nan,) if columns == 1 else (np.nan, columns)
            pieces = [dask.delayed(of_file)(function, source) for source in X]
            return da.concatenate([da.from_delayed(one, shape, dtype) for one in pieces])
        if hasattr(X, "to_dask_array"):
            X = X.to_dask_array()
        if not hasattr(X, "rechunk"):
            return function(as_matrix(X))
        whole = X if X.numblocks[1] == 1 else X.rechunk({1: -1})
        if columns == 1:
            return whole.map_blocks(function, dtype=dtype, drop_axis=1, meta=np.empty(0, dtype=dtype))
        chunks = (whole.chunks[0], (columns,))
        return whole.map_blocks(function, dtype=dtype, chunks=chunks, meta=np.empty((0, 0), dtype=dtype))

    def _strength(self) -> dict[str, Any]:
        return {"C": self.C} if self.lam is None else {"lam": self.lam}


def _mixed_where_alike(client: Client, parts: list[Any], seed: int) -> list[Any]:
    """The partitions, mixed where each holds rows that are all alike."""
    told = client.gather([client.submit(classes_and_census, part) for part in parts])
    if not alike(np.array([found for _, found in told]), max(classes for classes, _ in told)):
        return parts
    return mixed(parts, seed, functools.partial(client.submit, pure=False))


def classes_and_census(part: Any) -> tuple[int, np.ndarray]:
    """The number of classes, and the census of a partition."""
    return part.classes, census(part)


def shape_of(part: Any) -> tuple[int, int, int]:
    """Rows, features and bytes of a partition."""
    return part.size, rows.n_features(part.X), part_bytes(part)


def of_file(function: Callable[..., np.ndarray], source: Any) -> np.ndarray:
    return function(read_part(source, None)[0])
