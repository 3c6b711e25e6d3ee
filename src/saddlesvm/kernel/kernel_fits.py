"""The rows of a list of kernel problems, how each is posed on them, and the solvers by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from saddlesvm.fit.loop import Batch
from saddlesvm.fit.outcome import FitResult
from saddlesvm.fit.run import Fit
from saddlesvm.kernel.decomposition import Decomposition
from saddlesvm.kernel.definiteness import evidence_against
from saddlesvm.kernel.kernel_errors import kernel_errors
from saddlesvm.kernel.kernel_pegasos import KernelPegasos
from saddlesvm.kernel.kernel_problem import (
    FEW,
    KernelFacts,
    KernelProblem,
    can_share_matrix,
    make_kernel_problem,
)
from saddlesvm.kernel.mercer import Kernel, Matrix, gram
from saddlesvm.kernel.nu_machines import (
    PLAIN,
    Machine,
    ModelFacts,
    NuClassification,
    PublishedModel,
)
from saddlesvm.kernel.row_table import has_maker
from saddlesvm.kernel.small_pairs import PairsTask, SmallPairs
from saddlesvm.multiclass.fits import Fits, WithoutWeights, bundles_of
from saddlesvm.multiclass.sub_problems import Pairs, SubProblem
from saddlesvm.problem.loss import Loss
from saddlesvm.problem.problem import is_classification
from saddlesvm.solvers.base import SolverBase
from saddlesvm.solvers.register import parse_solver

# Rows of a pair, up to which a fit of its own spends more time in Python than on steps (measured)
APART = 1024
TOGETHER = 16  # small pairs in a bundle, at least, if several threads solve bundles (guessed)
KERNEL_SOLVERS: dict[str, type[SolverBase]] = {
    "auto": Decomposition,
    KernelPegasos.name: KernelPegasos,
}


def make_kernel_solver(solver: str | SolverBase) -> Any:
    """Return a solver object from its name, or the object itself.

    Raises
    ------
    ValueError
        The name is unknown, or the solver is none for kernels.
    """
    if isinstance(solver, (Decomposition, KernelPegasos)):
        return solver
    return parse_solver(solver, KERNEL_SOLVERS)


class Coefficients(NamedTuple):
    """The coefficients of the points that are not zero.

    Attributes
    ----------
    rows : int ndarray of shape (support,)
        Numbers of the points.
    values : ndarray of shape (support,)
    """

    rows: np.ndarray
    values: np.ndarray


@dataclass(kw_only=True)
class KernelRows:
    """The rows of a kernel machine's problems; see :class:`~saddlesvm.multiclass.fits.MachineRows`.

    Attributes
    ----------
    X : array or CSR matrix of shape (n, d)
        Of shape (n, n) if the kernel is precomputed: the kernel matrix.
    kernel : Kernel
    loss : Loss
    options : dict
        The rest of :func:`~saddlesvm.kernel.kernel_problem.make_kernel_problem`, for all
        sub-problems.
    machine : Machine
        How each is posed over its rows.
    facts : KernelFacts, optional
        Of all points, if they are known.
    members : dict of int to ndarray
        The points of each problem that is being solved.
    """

    X: Matrix
    kernel: Kernel
    loss: Loss
    options: dict[str, Any]
    machine: Machine = PLAIN
    facts: KernelFacts | None = None
    reads_together: bool = False
    members: dict[int, np.ndarray] = field(default_factory=dict)

    def pose(self, sub: SubProblem) -> KernelProblem:
        """Return the regularised risk problem of a sub-problem."""
        problem, self.members[sub.index] = make_kernel_problem(
            self.X,
            self.kernel,
            sub.y,
            self.loss,
            members=sub.members,
            facts=self.facts,
            **sub.with_weights(self.options),
        )
        return self.machine.pose(problem)

    def begin_at(self, fits: Fits, sub: SubProblem, problem: KernelProblem) -> dict[str, Any]:
        """Return nothing: a fit begins at the solver's first point."""
        return {}

    def publish(self, fits: Fits, fit: Fit, result: FitResult) -> FitResult:
        """Return the result with the coefficients of the points that are not zero."""
        members = self.members.pop(fit.index)
        model = PublishedModel(np.zeros(members.size), 0.0, result.certificate)
        if result.alpha.size == fit.problem.y.size == result.coef.size:
            facts = ModelFacts.from_problem(fit.problem)  # type: ignore[arg-type]
            model = self.machine.model(facts, result.coef, result.intercept, result.certificate)
        result = result.replace_certificate(model.certificate, "the quotient by rho")
        coef: Any = pick_support(members, model.coef)
        return replace(result, coef=coef, intercept=model.intercept)

    def solve_at_once(self, fits: Fits) -> dict[int, FitResult]:
        """Return no results: :meth:`batch_together` has small problems as batches."""
        return {}

    def batch_together(self, fits: Fits) -> Sequence[Batch[FitResult]] | None:
        """Return batches of small problems; None if problems need fits of their own.

        Several problems share kernel values of all points if the matrix fits into the cache.
        """
        problems = fits.problems
        count = len(problems)
        is_small = self.has_small_problems(fits)
        # A single problem shares nothing: its steps touch a part of the rows, if compiled code can
        # make them one by one (300 x 30, two classes: 1.33 ms instead of 1.69).
        has_rows_apart = self.has_rows_apart(count)
        is_few = is_small and self.X.shape[0] <= FEW and not has_rows_apart
        may_share = count > 1 or is_few
        megabytes = self.options["cache_size"]
        can_share = (
            self.facts is None and may_share and can_share_matrix(self.kernel, self.X, megabytes)
        )
        # Pairs share a table if compiled code makes their rows, else the whole matrix.
        has_table = can_share and count > 1 and has_rows_apart
        if can_share and not has_table:
            errors = kernel_errors(self.kernel, self.X)
            self.facts = KernelFacts(gram(self.kernel, self.X), errors)
        facts = self.facts
        # A shared matrix or table has the points class by class, so that a pair is two stretches of
        # it. Without either, each problem computes its own kernel rows.
        is_alone = facts is None and not has_table
        may_batch = not isinstance(problems, Pairs) or problems.sorted
        if is_alone:
            may_batch = has_rows_apart
        if not (is_small and may_batch):
            return None
        task = PairsTask(
            gram=None if facts is None else facts.gram,
            is_shared=has_table,
            jobs=fits.jobs,
            errors=kernel_errors(self.kernel, self.X) if facts is None else facts.errors,
            X=self.X,
            machine=self.machine,
            C=float(self.options["C"]),
            tol=fits.limits.tol,
            weights=self.options["weights"],
            solver=fits.solver.name,
            **self.parts_of(problems),
        )
        # Threads take bundles of problems; a problem with kernel rows of its own is a bundle.
        bundles = bundles_of(range(count), TOGETHER, fits.jobs)
        if is_alone:
            bundles = [range(k, k + 1) for k in range(count)]

        def pick(points: np.ndarray, beta: np.ndarray) -> Coefficients:
            """Return the coefficients of a small problem that has ended."""
            fits.clock.count_done()
            return pick_support(points, beta)

        return [SmallPairs(bundle, task, fits.batch_of, pick) for bundle in bundles]

    def has_small_problems(self, fits: Fits) -> bool:
        """Return True if :mod:`saddlesvm.kernel.small_pairs` can solve the problems.

        They must be pairs of classes or a single problem, small, with a free intercept, positive
        weights and default options, and without a callback or a bar.
        """
        options = self.options
        solver = fits.solver
        is_default = fits.limits.gap == 0.0 and options.get("lam") is None
        if not (is_default and fits.is_unwatched) or type(solver) is not Decomposition:
            return False
        weights = options["weights"]
        has_positive_weights = weights is None or bool((weights > 0.0).all())
        if not (options["intercept"] == "free" and has_positive_weights):
            return False
        problems = fits.problems
        if isinstance(problems, Pairs):
            # The largest pair has the two largest classes.
            largest = int(np.sort(np.diff(problems.starts))[-2:].sum())
            return largest <= max(FEW, solver.working_set)
        # A single problem of all rows, with the weights of the options.
        sub = problems[0]
        has_all_rows = sub.members is None and sub.weights is None and sub.factor == 1.0
        is_single = len(problems) == 1 and has_all_rows
        return is_single and self.X.shape[0] <= FEW and not self.has_short_rows()

    def parts_of(self, problems: Sequence[SubProblem]) -> dict[str, Any]:
        """Return the points of small problems, part by part, as ``PairsTask`` has them."""
        if isinstance(problems, Pairs):
            classes = np.array(problems.pairs)
            if isinstance(self.machine, NuClassification):
                classes = classes[:, ::-1]
            return {
                "rows": problems.rows,
                "classes": classes,
                "labels": [problems.label(k) for k in range(len(problems))],
                "targets": None,
                "layout": self.machine.layout(self.loss, 2),
            }
        # All points are the only class.
        sub = problems[0]
        layout = self.machine.layout(self.loss, 1)
        return {
            "rows": [np.arange(sub.y.size)],
            "classes": np.zeros((1, len(layout.signs)), dtype=np.int64),
            "labels": [sub.label],
            "targets": sub.y.astype(np.float64),
            "layout": layout,
        }

    def has_short_rows(self) -> bool:
        """Return True if a linear kernel's problem ends as a linear problem over short rows."""
        return (
            self.machine is PLAIN
            and self.kernel.metric == "linear"
            and self.X.shape[1] < self.X.shape[0]
        )

    def has_rows_apart(self, count: int) -> bool:
        """Return True if compiled code makes the kernel rows of each pair as its steps need them.

        The machines with nu begin at a point that needs some at once.
        """
        is_quick = count > 1 or self.X.shape[0] <= APART
        return self.machine is PLAIN and is_quick and has_maker(self.kernel, self.X)

    def without_weights(self, tol: float) -> tuple[WithoutWeights, np.ndarray | None] | None:
        """Return the model without coefficients of a classification; None for other machines."""
        if self.machine is not PLAIN or not is_classification(self.loss):
            return None
        options = self.options
        # Without an intercept the model is zero; a free one costs nothing.
        charge = 0.0 if options["intercept"] == "free" else np.inf
        model = WithoutWeights(
            loss=self.loss,
            C=options.get("C"),
            lam=options.get("lam"),
            share=1.0,
            charge=charge,
            tol=tol,
            coef=Coefficients(np.empty(0, dtype=np.intp), np.empty(0)),
            alpha=np.empty(0),
        )
        return model, options["weights"]

    def complete(self, results: list[FitResult]) -> list[FitResult]:
        """Return the results; without a dual bound if the kernel is not definite."""
        if self.kernel.definite or not results:
            return results
        support: Any = [result.coef.rows for result in results]  # type: ignore[attr-defined]
        evidence = evidence_against(self.kernel, self.X, np.unique(np.concatenate(support)))
        if not evidence:
            return results
        return [result.remove_bound(evidence) for result in results]


def pick_support(points: np.ndarray, beta: np.ndarray) -> Coefficients:
    """Return the coefficients of points that are not zero."""
    support = np.flatnonzero(beta)
    return Coefficients(points[support], beta[support])
