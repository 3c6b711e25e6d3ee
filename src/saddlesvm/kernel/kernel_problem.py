"""The regularised risk problem over a kernel's feature space, and the certificate of a point of it.

    P(b, f) = C sum_i s_i phi_i(f_i + b) + (1/2) sum_i beta_i f_i,      f = K beta,  beta = C a
    D(a)    = -C sum_i s_i phi_i*(-a_i / s_i) - (1/2) sum_i beta_i f_i

This is :class:`saddlesvm.problem.problem.Problem` with ``w = sum_i beta_i k(x_i, .)`` known through
its coefficients only.

Two things make room for the other machines of the family. Rows of the dual may be signed views of
the points: beta_i times the sign of row i is added to the coefficient of its point; a regression
with two variables a point has twice as many rows. And several groups of rows may each have an
offset, and a given sum of dual variables, of their own:

    z_i = f_i + b_g(i),     sum_{i in g} a_i = total_g,     P gains C sum_g total_g b_g

The gap bounds the distance to the optimum for positive semi-definite kernels. With others (sigmoid,
some callables) the problem is not convex: the gap is still not negative, and zero exactly at
stationary points, but bounds nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from saddlesvm.kernel.kernel_errors import KernelErrors, kernel_errors
from saddlesvm.kernel.mercer import Kernel, Matrix, expand, gram
from saddlesvm.kernel.row_blocks import RowSource, row_source
from saddlesvm.kernel.row_table import RowTable
from saddlesvm.problem.intercepts import Group, Intercept, InterceptName, make_intercept
from saddlesvm.problem.losses import Loss, loss_name, traits_of
from saddlesvm.problem.penalties import L2, Penalty
from saddlesvm.problem.problem import Strength, Weighted, resolve_C
from saddlesvm.problem.terms import Pointwise, box_of

FEW = 512  # points whose kernel matrix is held whole, in float64: 2 MB
# Rows of a problem that holds its kernel rows in float64, if the cache has room (measured)
MIDDLE = 4096


class Views(NamedTuple):
    """The rows of a dual as signed views of the points.

    Attributes
    ----------
    points : int ndarray of shape (n,)
        The point that each row is a view of.
    signs : ndarray of shape (n,)
        -1 and +1.
    size : int
        Number of points.
    """

    points: np.ndarray
    signs: np.ndarray
    size: int

    def values_at_rows(self, f: np.ndarray) -> np.ndarray:
        """Return values at the points as the rows have them; shape (n,) or (n, outputs)."""
        return (f[self.points].T * self.signs).T

    def sum_at_points(self, beta: np.ndarray) -> np.ndarray:
        """Return the sums of the rows' coefficients at the points, of one or several outputs."""
        found = np.zeros((self.size, *beta.shape[1:]))
        np.add.at(found, self.points, (beta.T * self.signs).T)
        return found


class KernelFacts(NamedTuple):
    """Facts that problems over the same points share.

    Attributes
    ----------
    gram : ndarray of shape (points, points), float64
        The kernel matrix.
    errors : KernelErrors
    """

    gram: np.ndarray
    errors: KernelErrors

    def select(self, chosen: np.ndarray) -> KernelFacts:
        """Return the facts of some points; their numbers ascend."""
        return KernelFacts(self.gram[np.ix_(chosen, chosen)], self.errors.select(chosen))


def can_share_matrix(kernel: Kernel, X: Matrix, megabytes: float) -> bool:
    """Return True if the kernel matrix fits into the cache, and takes a matrix product."""
    return 8.0 * X.shape[0] ** 2 <= megabytes * 2**20 and kernel.has_products


@dataclass(frozen=True, eq=False)
class KernelProblem(Weighted):
    """A problem in the feature space of a kernel.

    Attributes
    ----------
    X : array or CSR matrix of shape (points, d)
        The kernel matrix of the points if it is precomputed.
    kernel : Kernel
    y : ndarray of shape (n,), float64
        Labels -1 and +1, or targets.
    weights : ndarray of shape (n,) or (0,), float64
        Positive row weights; empty when all are 1.
    loss : Loss
        A loss with a ``tube``, such as the hinge.
    C : float
    n_lambda : int
        Number of rows that define ``lambda = 1 / (n C)``: all of them, and rows of weight zero
        that were left out.
    intercept : Absent or Free
    cache_size : float
        Megabytes for rows of the kernel matrix.
    uses_lambda : bool
        Report objectives in the lambda form instead of the C form.
    threads : int
        That the fit may use.
    views : Views, optional
        The rows as views of the points; by default each point is a row.
    groups : tuple of Group
        Rows with an offset of their own; if empty, all share that of `intercept`.
    facts : KernelFacts, optional
        Facts of the points, if they are known.
    """

    X: Matrix
    kernel: Kernel
    y: np.ndarray
    weights: np.ndarray
    loss: Loss
    C: float
    n_lambda: int
    intercept: Intercept
    cache_size: float = 200.0
    uses_lambda: bool = False
    threads: int = 1
    views: Views | None = None
    groups: tuple[Group, ...] = ()
    facts: KernelFacts | None = None

    def kept_duals(self, alpha: np.ndarray) -> np.ndarray:
        """Return a copy of dual variables, which the solver changes later."""
        return alpha.copy()

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.y.size

    @property
    def strength(self) -> Strength:
        """C, lambda and the form in which objectives are reported."""
        return Strength(self.C, self.n_lambda, self.uses_lambda)

    @property
    def penalty(self) -> Penalty:
        """Half the squared norm in the feature space: there is no other."""
        return L2()

    @cached_property
    def errors(self) -> KernelErrors:
        """The facts of the rows that bounds on the rounding of kernel values need."""
        return kernel_errors(self.kernel, self.X) if self.facts is None else self.facts.errors

    @cached_property
    def members(self) -> np.ndarray:
        """The rows that take part: all."""
        return np.arange(self.n, dtype=np.int32)

    @cached_property
    def all_groups(self) -> tuple[Group, ...]:
        """The groups; a single group of all rows if there are none."""
        return self.groups or (Group(self.members, self.intercept),)

    @cached_property
    def group_of(self) -> np.ndarray:
        """The number of each row's group, shape (n,)."""
        found = np.zeros(self.n, dtype=np.int32)
        for k, (rows, _) in enumerate(self.all_groups):
            found[rows] = k
        return found

    @cached_property
    def group_order(self) -> np.ndarray:
        """The rows group by group, shape (n,)."""
        return np.argsort(self.group_of, kind="stable") if self.groups else self.members

    @cached_property
    def terms(self) -> Pointwise:
        """Loss, labels and weights as compiled kernels take them."""
        return Pointwise(self.loss, self.y, self.weights)

    @property
    def n_features(self) -> int:
        """Number of features; of rows, for a precomputed kernel."""
        return self.X.shape[1]

    @property
    def values_per_row(self) -> float:
        """Mean number of stored values a row."""
        values = self.X.nnz if sparse.issparse(self.X) else self.X.size
        return max(1.0, values / max(1, self.n))

    def box(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper bounds of ``beta_i``, C times the bounds of ``a_i``, shape (n,) each."""
        low, high = self.bounds
        return self.C * low, self.C * high

    @cached_property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper bounds of ``a_i``, shape (n,) each."""
        return box_of(self.loss, self.y, self.weights)

    @property
    def is_regression(self) -> bool:
        """Whether the rows have targets instead of labels."""
        return traits_of(self.loss).task == "regression"

    @property
    def tube(self) -> float:
        """Return what the conjugate charges for each unit of ``|beta_i|``; often zero."""
        loss: Any = self.loss
        return float(loss.tube())

    @cached_property
    def table(self) -> RowTable | None:
        """Return the table of kernel rows; None for many points.

        It holds all rows if the points are few, or share the matrix with other problems. With some
        thousand points it holds the rows that were needed.
        """
        points = self.X.shape[0]
        if self.facts is not None:
            return RowTable.from_matrix(self.facts.gram)
        if points <= FEW:
            return RowTable.from_matrix(gram(self.kernel, self.X))
        # float64 values, and a cache in units of 2^20 bytes.
        fits = self.n <= MIDDLE and 8.0 * points**2 <= self.cache_size * 2**20
        if fits and self.kernel.has_products:
            return RowTable(self.kernel, self.X)
        return None

    @cached_property
    def row_source(self) -> RowSource:
        """The source of kernel rows over the points in float32, for solvers and rough values."""
        return row_source(self.kernel, self.X)

    @property
    def gram(self) -> np.ndarray | None:
        """The whole kernel matrix of a :attr:`table`; rows that it lacks are computed."""
        return None if self.table is None else self.table.whole()

    def sum_at_points(self, beta: np.ndarray) -> np.ndarray:
        """Return the sums of the rows' coefficients at the points, of one or several outputs."""
        return beta if self.views is None else self.views.sum_at_points(beta)

    def sizes_at_rows(self, sizes: np.ndarray) -> np.ndarray:
        """Return sizes of the points, shape (points,), for the rows."""
        return sizes if self.views is None else sizes[self.views.points]

    def margins(self, beta: np.ndarray) -> np.ndarray:
        """Return ``f = K beta`` in float64 for one or more beta.

        The last result is kept: a run may begin, be certified and end at the same point.
        """
        if self.last and np.array_equal(self.last[0][0], beta):
            return self.last[0][1].copy()
        found = self._margins(beta)
        self.last[:] = [(beta.copy(), found.copy())]
        return found

    @cached_property
    def last(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """The last beta whose margins were asked for, and these; empty before."""
        return []

    def _margins(self, beta: np.ndarray) -> np.ndarray:
        """Compute the margins, by the kernel rows of the support vectors."""
        beta = self.sum_at_points(beta)
        support = np.flatnonzero(beta.any(axis=1) if beta.ndim == 2 else beta)
        if self.table is None:
            f = expand(self.kernel, self.X, self.kernel.centres(self.X, support), beta[support])
        else:
            f = self.table.sums(support, beta[support])
        return self.values_at_rows(f)

    def values_at_rows(self, f: np.ndarray) -> np.ndarray:
        """Return values at the points for the rows."""
        return f if self.views is None else self.views.values_at_rows(f)

    def points_of(self, rows: np.ndarray) -> np.ndarray:
        """Return the points of some rows."""
        return rows if self.views is None else self.views.points[rows]

    def describe(self) -> str:
        """Return a line that says which problem this is."""
        return (
            f"{loss_name(self.loss)} loss, {self.kernel.name} kernel, {self.n:,} rows, "
            f"C = {self.C:g} (lambda = {self.lam:g}), intercept {self.intercept}"
        )


def make_kernel_problem(
    X: Matrix,
    kernel: Kernel,
    y: np.ndarray,
    loss: Loss,
    *,
    C: float | None = None,
    lam: float | None = None,
    weights: np.ndarray | None = None,
    members: np.ndarray | None = None,
    intercept: InterceptName | Intercept = "free",
    cache_size: float = 200.0,
    facts: KernelFacts | None = None,
) -> tuple[KernelProblem, np.ndarray]:
    """Assemble a problem from checked parts; return it with the numbers of the rows that take part.

    Parameters
    ----------
    y : ndarray of shape (n_all,)
        -1 and +1, or targets; values of rows that are not members do not count.
    weights : ndarray of shape (n_all,), optional
        Not negative; rows of weight zero are left out.
    members : ndarray, optional
        Ascending row numbers; all rows when left out.
    intercept : {"none", "free"} or an intercept
    facts : KernelFacts, optional
        Of all rows.

    Raises
    ------
    ValueError
        The intercept is unknown, or C and lam do not fit together.
    """
    kind = make_intercept(intercept, 1.0)
    chosen = members
    if chosen is None:
        chosen = np.arange(y.size)
    # lambda = 1 / (C n) counts rows of weight zero; all else leaves them out.
    n_lambda = chosen.size
    uses_lambda = lam is not None
    C, _ = resolve_C(C, lam, n_lambda)
    s = np.empty(0)  # the row weights s_i; empty if all are 1
    if weights is not None:
        chosen = chosen[weights[chosen] > 0.0]
        s = np.asarray(weights, dtype=np.float64)[chosen]
    if chosen.size < y.size:
        # A given kernel matrix loses the columns of these rows, too.
        X = X[np.ix_(chosen, chosen)] if kernel.precomputed else X[chosen]
        facts = None if facts is None else facts.select(chosen)
    problem = KernelProblem(
        X=X,
        kernel=kernel,
        y=np.ascontiguousarray(y[chosen], dtype=np.float64),
        weights=s,
        loss=loss,
        C=C,
        n_lambda=n_lambda,
        intercept=kind,
        cache_size=cache_size,
        uses_lambda=uses_lambda,
        facts=facts,
    )
    return problem, chosen
