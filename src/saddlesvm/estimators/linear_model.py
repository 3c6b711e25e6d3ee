"""What the linear estimators share: the fit of their sub-problems, warm starts, and what is kept of them."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from saddlesvm.data import inputs
from saddlesvm.estimators.base import Estimator
from saddlesvm.estimators.diagnosis import scale_hint, separability
from saddlesvm.estimators.sklearn_callbacks import CallbackSupport, FitTasks
from saddlesvm.fit.checkpoint import Checkpoint
from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Outcome
from saddlesvm.fit.progress import ProgressBar
from saddlesvm.fit.result import FitResult
from saddlesvm.multiclass import sub_problems as multiclass
from saddlesvm.multiclass.class_sweep import Sweep, make_sweep
from saddlesvm.multiclass.shared_start import SharedStart, block_size
from saddlesvm.multiclass.sub_problems import SubProblem
from saddlesvm.problem.certificate import Point
from saddlesvm.problem.losses import Loss
from saddlesvm.problem.problem import Intercept, Problem, resolve_C
from saddlesvm.rows import layouts as rows
from saddlesvm.rows.memory_plan import does_not_fit, memory_bytes
from saddlesvm.rows.scores import linear_scores
from saddlesvm.runtime.randomness import seed_of
from saddlesvm.runtime.threads import worth_threads
from saddlesvm.solvers.automatic.auto import FINISH, Auto
from saddlesvm.solvers.base import SolverBase
from saddlesvm.solvers.blocks import Blocks
from saddlesvm.solvers.threaded.descent import with_threads


class Training(NamedTuple):
    """What a linear model is the solution of: its sub-problems, their loss, and the weights of the rows."""

    problems: list[SubProblem]
    loss: Loss
    weights: np.ndarray | None


class LinearModel(CallbackSupport, Estimator):
    """What the linear estimators share: options, the fit of one problem, and what is kept of it."""

    C: Any
    lam: float | None
    loss: str | Loss
    solver: str | SolverBase
    fit_intercept: bool
    intercept: str
    intercept_scaling: float
    random_state: Any
    warm_start: bool
    verbose: int
    checkpoint: Any
    memory: Any
    coef_: Any
    intercept_: Any
    _phases: list[dict[str, float]]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _intercept_kind(self) -> Intercept:
        if not self.fit_intercept:
            return "none"
        if self.intercept not in ("regularized", "free"):
            raise ValueError(f"intercept must be 'regularized' or 'free'; got {self.intercept!r}")
        return "free" if self.intercept == "free" else "regularized"

    def _rows(self, X: Any, kind: Intercept, threads: int = 1) -> tuple[rows.Rows, np.ndarray]:
        """X as rows with the virtual feature of the intercept, and their squared norms."""
        plain = rows.as_rows(X)
        norms = inputs.finite_norms(plain, threads)
        if kind == "none":
            return plain, norms
        scale = float(self.intercept_scaling)
        if kind == "free":
            scale = float(np.sqrt(norms.mean())) or 1.0
        norms += scale * scale
        return plain._replace(bias=scale), norms

    def _start(self, sub: SubProblem, problem: Problem, count: int) -> Point | None:
        """The dual point that a warm start begins from; None without one that fits."""
        kept = getattr(self, "dual_coef_", None) if self.warm_start else None
        vectors = count * sub.n_vectors
        if kept is None or kept.shape != (vectors, problem.y.size):
            return None
        if np.atleast_2d(self.coef_).shape != (vectors, problem.n_features):
            return None
        duals = kept[[sub.index]] if count > 1 else kept
        share = problem.y.size / problem.n if self.certificate_.form == "lambda" else 1.0
        fitted_C = self._fitted_C * share
        k = sub.index if np.ndim(self.coef_) > 1 else 0
        w = np.append(np.atleast_2d(self.coef_)[k], np.ravel(self.intercept_)[k] / (problem.scale or 1.0))
        return sub.start(problem, duals.toarray() if sparse.issparse(duals) else duals, fitted_C, w)

    def begin_at(self, coef: Any, intercept: Any, duals: Any, C: float, like: LinearModel) -> None:
        """Let the next fit begin at given weights and dual variables, as if they had been fitted with `C`.

        Parameters
        ----------
        coef, intercept, duals
            Of the shapes of ``coef_``, ``intercept_`` and ``dual_coef_``.
        C : float
            The one that `duals`, in the C form, belong to.
        like : LinearModel
            A fitted model of the same data, whose finish this one begins with.
        """
        self.coef_, self.intercept_, self.dual_coef_ = coef, intercept, duals
        self._fitted_C, self.certificate_, self._phases = float(C), like.certificate_, like._phases

    def _solve(
        self,
        X: Any,
        problems: Sequence[Any],
        loss: Loss,
        weights: np.ndarray | None,
        n_jobs: int | None,
        tasks: FitTasks,
    ) -> list[FitResult]:
        """Fit every sub-problem and keep coefficients, certificates and traces."""
        solver, kind = self._made_solver(), self._intercept_kind()
        limits = self._limits(solver)
        n = X.shape[0]
        strength = self._strength()
        seed = seed_of(self.random_state)
        options = dict(weights=weights, intercept=kind, **strength)
        shared: SharedStart | Sweep | None = None
        sweep, together = self._sweep(X, problems, loss, solver, seed, options), 1
        if sweep:
            n_jobs, solver = None, sweep.solver
            shared = sweep if len(problems) > 1 and self._counts_no_epochs() else None
        jobs = multiclass.workers(len(problems), n_jobs)
        pays = sweep or worth_threads(rows.reading_time(rows.as_rows(X), X.size))
        threads = multiclass.threads_each(jobs, n_jobs) if pays else 1
        if not sweep:
            design, norms = self._rows(X, kind, jobs * threads)
        clock = multiclass.SharedTime(self.max_time, len(problems), jobs)
        if not sweep and self._may_share():
            together = block_size(design, len(problems), jobs)
        if together > 1:
            most = np.inf
            if isinstance(solver, Auto):
                first = problems[0]().problem(design, loss, norms=norms, **options)
                most = solver.epochs_from_samples(first, self.tol)
            shared = SharedStart(problems, together, self.tol, seed, most)
        bar = self._bar(len(problems))

        def solve(sub: SubProblem, stop: threading.Event) -> FitResult:
            problem = sweep.problem(sub) if sweep else sub.problem(design, loss, norms=norms, **options)
            problem = dataclasses.replace(problem, threads=threads) if threads > 1 else problem
            if shared:
                start: Point | None = shared.point(sub.index, problem, stop, clock.share())
            else:
                start = self._start(sub, problem, len(problems))
            result = fit(
                problem,
                with_threads(problem, self._begun(solver, sub.index, start)),
                dataclasses.replace(limits, max_time=clock.share(), certify_start=shared is not None),
                seed=seed + sub.index,
                start=start,
                callbacks=[*(self.callbacks or ()), *tasks.callback(sub), *([bar] if self.verbose else ())],
                checkpoint=self._checkpoint(sub, len(problems)),
                stop=stop,
                label=sub.label,
            )
            clock.done()
            result = shared.credited(sub.index, result) if shared else result
            if self.verbose:
                bar.next_problem()
            return _with_duals(result, problem.C, sweep is not None, len(problems) == 1)

        with bar, sweep or contextlib.nullcontext():
            results = multiclass.solve_all(problems, solve, n_jobs, together)
        self._fitted_C = resolve_C(strength.get("C"), strength.get("lam"), n)[0]
        self._keep(results)
        worst = multiclass.worst_outcome(results)
        unsolved = worst.outcome not in (Outcome.CERTIFIED, Outcome.INTERRUPTED) and self.tol > 0.0
        worst.warn(stacklevel=6, hints=scale_hint(X) + separability(self) if unsolved else ())
        return results

    def _bar(self, count: int) -> Any:
        """A bar for so many sub-problems, where one is wanted; a context in any case."""
        return ProgressBar(self.tol, count, self.max_iter, self.max_time) if self.verbose else contextlib.nullcontext()

    def _begun(self, solver: Any, index: int, start: Point | None) -> Any:
        """The solver; one that has a finish begins with it where the fit before, of a warm start, ended with it."""
        before = getattr(self, "_phases", [])
        if isinstance(solver, Auto) and self.warm_start and start is not None and index < len(before):
            return dataclasses.replace(solver, begin=FINISH if FINISH in before[index] else solver.begin)
        return solver

    def _may_share(self) -> bool:
        """Whether the sub-problems are over the same rows and may begin together."""
        free = self._counts_no_epochs()
        return free and self.solver in ("auto", "dcd") and getattr(self, "multi_class", "") == "ovr"

    def _counts_no_epochs(self) -> bool:
        """Whether nothing asks for the epochs, or the way, of each sub-problem alone."""
        return self.max_iter is None and self.checkpoint is None and not self.warm_start and self.tol > 0.0

    def _sweep(
        self, X: Any, problems: Sequence[Any], loss: Loss, solver: Any, seed: int, options: dict[str, Any]
    ) -> Sweep | None:
        """What training block by block needs, where X does not fit into memory; None where it is trained on in place.

        Raises
        ------
        ValueError
            It must go block by block, but the solver or the way to split classes cannot.
        """
        memory = None if self.memory is None else memory_bytes(self.memory)
        asked = isinstance(solver, Blocks)
        if not asked and not does_not_fit(X, memory):
            return None
        split = getattr(self, "multi_class", "ovr")
        if split != "ovr" or not isinstance(solver, (Auto, Blocks)):
            if not asked and memory is None:
                return None
            raise ValueError(
                "training block by block (memory=, or solver='blocks') needs solver='auto' or 'blocks' and "
                f"multi_class='ovr'; got solver={self.solver!r}, multi_class={split!r}"
            )
        return make_sweep(
            X, problems, loss, solver if isinstance(solver, Blocks) else Blocks(), memory,
            tol=self.tol, seed=seed, scale=float(self.intercept_scaling), checkpoint=self.checkpoint, options=options,
        )  # fmt: skip

    def _checkpoint(self, sub: SubProblem, count: int) -> Checkpoint | None:
        if self.checkpoint is None:
            return None
        given = self.checkpoint
        if not isinstance(given, Checkpoint):
            given = Checkpoint(given if count == 1 else f"{given}.{sub.index}")
        own = copy.copy(given)
        own.seeded = given.seeded and isinstance(self.random_state, (int, np.integer))
        return own

    def _keep(self, results: list[FitResult]) -> None:
        self.coef_ = np.vstack([result.coef for result in results])
        self.intercept_ = np.hstack([result.intercept for result in results])
        duals = [result.alpha for result in results]
        self.dual_coef_ = sparse.vstack(duals, format="csr") if sparse.issparse(duals[0]) else duals[0]
        self._phases = [result.phases for result in results]
        self.phases_: dict[str, float] = {}
        for phases in self._phases:
            for phase, spent in phases.items():
                self.phases_[phase] = self.phases_.get(phase, 0.0) + spent
        self._note(results)

    def _scores(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        X = inputs.check_design(self, X, reset=False)
        inputs.finite_norms(rows.as_rows(X))
        return linear_scores(X, self.coef_, self.intercept_)


def _with_duals(result: FitResult, C: float, in_place: bool, alone: bool) -> FitResult:
    """The result with its dual variables in the C form, a row each; sparse unless they are one row of one problem."""
    duals = np.atleast_2d(result.alpha.T)
    duals = np.multiply(duals, C, out=duals if in_place else None)
    return dataclasses.replace(result, alpha=duals if alone and len(duals) == 1 else sparse.csr_array(duals))
