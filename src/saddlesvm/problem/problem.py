"""One regularised risk problem: rows, labels, weights, loss, lambda, intercept.

Only this file relates C and lambda.

    P(w) = (1/n) sum_i s_i phi_i(x_i . w) + (lambda/2) ||w||^2          or, times n C = 1 / lambda,
    C sum_i s_i phi_i(x_i . w) + (1/2) ||w||^2                          with  C = 1 / (lambda n).

The dual point ``a`` gives ``w(a) = C sum_i a_i x_i``. Inside, everything is computed in the C form.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np

from saddlesvm.problem.bounds import (
    UNIT,
    Facts,
    LossSizes,
    MarginErrors,
    PointSizes,
    RowSizes,
    loss_sizes,
    paid_rounding,
    point_sizes,
    row_sizes,
)
from saddlesvm.problem.intercepts import Absent, Intercept, InterceptName, make_intercept
from saddlesvm.problem.loss import Loss, Shape, has_array_methods, loss_name, traits_of
from saddlesvm.problem.penalties import L2, Penalty
from saddlesvm.problem.regularizer import Regularizer
from saddlesvm.problem.terms import Pointwise, Terms, weights_at
from saddlesvm.rows import layouts as rows
from saddlesvm.rows.layouts import Rows
from saddlesvm.rows.matrix import in_arrays
from saddlesvm.rows.passes import InMemory, Part, Passes, squared_norms
from saddlesvm.runtime.allowed import STRENGTH, check

Value = TypeVar("Value")
# Units in the last place of a target by which its distance from an intercept may be off; derived.
TARGET_UNITS = 4.0


def resolve_C(C: float | None, lam: float | None, n: int) -> tuple[float, float]:
    """Return C and lambda if one is given: ``C = 1 / (lambda n)``; this is done nowhere else.

    Raises
    ------
    ValueError
        Both or neither were given, or the given value is no strength.
    """
    if C is None and lam is None:
        raise ValueError(
            "give C or lam (lambda), the strength that the objective was made with: "
            "C = 1 / (lambda n)"
        )
    if C is not None and lam is not None:
        raise ValueError("give either C or lam (lambda), not both: C = 1 / (lambda n)")
    if C is not None:
        check("C", C, STRENGTH)
        return float(C), 1.0 / (float(C) * n)
    assert lam is not None
    check("lam", lam, STRENGTH)
    return 1.0 / (float(lam) * n), float(lam)


class Strength(NamedTuple):
    """The weight of the losses beside the regulariser, and the form of reported objectives.

    Attributes
    ----------
    C : float
    n : int
        Number of rows that define ``lambda = 1 / (n C)``.
    uses_lambda : bool, default=False
        Report objectives in the lambda form instead of the C form.
    share : float, default=1.0
        The factor of objectives in the C form for their report: solvers may work on a multiple of
        what was asked.
    """

    C: float
    n: int
    uses_lambda: bool = False
    share: float = 1.0

    @property
    def lam(self) -> float:
        """lambda = 1 / (n C)."""
        return 1.0 / (self.n * self.C)

    @property
    def unit(self) -> float:
        """The factor of an objective in the C form for its report: `share`, or lambda."""
        return self.lam if self.uses_lambda else self.share

    @property
    def form(self) -> str:
        """The form in which objectives are reported: "C" or "lambda"."""
        return "lambda" if self.uses_lambda else "C"


class Rooms(NamedTuple):
    """Memory that a problem over files may use.

    Each array has the shape (n_all,), in memory or in a mapped file.

    Attributes
    ----------
    duals : ndarray
        The dual variables of the solver.
    best : ndarray, optional
        The dual variables of the best bound so far; copied in memory if there is no room.
    spare : ndarray, optional
        Further dual variables, of a sweep under way.
    kept_bytes : int
        Bytes for rows that the solver may keep from one block to the end of the sweep.
    """

    duals: np.ndarray = np.empty(0)
    best: np.ndarray | None = None
    spare: np.ndarray | None = None
    kept_bytes: int = 0


NO_ROOM = Rooms()


class in_memory_cached(cached_property[Value]):
    """A cached property of a problem; over files it is computed anew each time.

    There, squared norms are known once their block has been read, and labels are kept in a few
    bytes a row.
    """

    def __get__(self, problem: Any, owner: type | None = None) -> Any:
        if problem is not None and problem.place is not None and problem.on_files:
            return self.func(problem)
        return super().__get__(problem, owner)


class Weighted(ABC):
    """The common part of problems: how their rows are weighted, and their objectives reported."""

    y: np.ndarray
    weights: np.ndarray

    @property
    @abstractmethod
    def strength(self) -> Strength:
        """C, lambda and the form in which objectives are reported."""

    @property
    def lam(self) -> float:
        """lambda = 1 / (n C)."""
        return self.strength.lam

    @property
    def unit(self) -> float:
        """The factor of an objective in the C form for its report: 1, or lambda."""
        return self.strength.unit

    @property
    def row_weights(self) -> np.ndarray:
        """Weights of all rows, 1 if none were given, shape (n,)."""
        return self.weights if self.weights.size else np.ones(self.y.size)


@dataclass(frozen=True, eq=False)
class Problem(Weighted):
    """A regularised risk problem over (some of) the rows of a design matrix.

    Attributes
    ----------
    X : Dense or CSR
        The rows; their `bias` is `scale`, without an intercept 0.
    y : ndarray of shape (n_all,)
        Labels -1 and +1, or targets, float64; over files whole numbers in few bytes. Rows that are
        not members are ignored.
    loss : Loss
    C : float
        ``1 / (lambda n)``.
    weights : ndarray of shape (n_all,) or (0,), float64
        Non-negative row weights s_i; empty when all are 1.
    norms : ndarray of shape (n_all,), float64
        Squared norms of the rows, the virtual feature included.
    members : ndarray of shape (n,), int32 or int64
        The rows that take part, ascending; rows of weight zero are left out.
    intercept : Absent, Regularized or Free
    n : int
        Number of rows that define lambda: the members, and the rows of weight zero.
    uses_lambda : bool
        Report objectives in the lambda form instead of the C form.
    threads : int
        Most threads of a pass over the rows.
    penalty : Penalty
        The penalty of the features' weights.
    share : float
        The factor of objectives in the C form for their report, see :class:`Strength`.
    fixed : ndarray of shape (d + 1,) or (0,)
        The pull of rows that are left out because their multipliers are known: ``fixed . w`` is
        subtracted from the primal objective.
    place : Passes, optional
        The place of the rows, if they are not plain arrays; `X` then holds no values, or is mapped
        from files.
    rooms : Rooms, optional
        Memory that solvers over files may use.
    scale : float
        Value of the virtual feature; 0 without an intercept.
    n_features : int
        Number of features, the virtual one not counted.
    sparse : bool
        True if the rows have column indices.
    is_plain : bool
        True if the penalty is half a square.
    is_smooth : bool
        True if the loss has a derivative everywhere.
    is_cornerless : bool
        True if that derivative has no corner either.
    holds_rows : bool
        True if `X` holds the values of the rows.
    on_files : bool
        True if each pass over the rows reads them from files.
    """

    X: Rows
    y: np.ndarray
    loss: Loss
    C: float
    weights: np.ndarray
    norms: np.ndarray
    members: np.ndarray
    intercept: Intercept = field(default_factory=Absent)
    n: int = 0
    uses_lambda: bool = False
    threads: int = 1
    penalty: Penalty = field(default_factory=L2)
    share: float = 1.0
    fixed: np.ndarray = field(default_factory=partial(np.empty, 0))
    place: Passes | None = None
    rooms: Rooms = field(default=NO_ROOM, repr=False)
    scale: float = field(init=False, repr=False)
    n_features: int = field(init=False, repr=False)
    sparse: bool = field(init=False, repr=False)
    is_plain: bool = field(init=False, repr=False)
    is_smooth: bool = field(init=False, repr=False)
    is_cornerless: bool = field(init=False, repr=False)
    holds_rows: bool = field(init=False, repr=False)
    on_files: bool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        # Solvers and certificates ask for these values many times.
        shape = traits_of(self.loss).shape
        place = self.place
        values = {
            "scale": self.X.bias,
            "n_features": self.X.n_features,
            "sparse": self.X.sparse,
            "is_plain": isinstance(self.penalty, L2),
            "is_smooth": shape is not Shape.KINKED,
            "is_cornerless": shape is Shape.SMOOTH,
            "holds_rows": place is None or place.holds_rows,
            "on_files": place is not None and place.reads_files,
        }
        vars(self).update(values)

    @cached_property
    def strength(self) -> Strength:
        """C, lambda and the form in which objectives are reported."""
        return Strength(self.C, self.n, self.uses_lambda, self.share)

    @cached_property
    def all_weights(self) -> np.ndarray:
        """Weights of all rows, zero for rows that take no part, shape (n,)."""
        found = np.zeros(self.y.size)
        found[self.members] = self.row_weights[self.members]
        return found

    @cached_property
    def passes(self) -> Passes:
        """How to pass over the members."""
        if self.place is not None:
            return self.place.select(self.members)
        return InMemory(self.X, self.members, self.threads)

    @property
    def n_values(self) -> int:
        """Number of stored values of all rows."""
        return self.X.n_values

    @property
    def row_bytes(self) -> float:
        """Mean number of bytes of a row."""
        return self.X.nbytes / self.y.size

    @property
    def dtype(self) -> np.dtype:
        """Precision of weights that go with the rows: float32 or float64."""
        return self.X.dtype

    @cached_property
    def regularizer(self) -> Regularizer:
        """The cost of weights: the penalty, and the intercept's share."""
        return Regularizer(self.penalty, self.intercept, self.fixed)

    def scale_pull(self, pull: np.ndarray) -> np.ndarray:
        """Return C times the sum `pull`, in place, plus the pull of the rows that are left out."""
        pull *= self.C
        if self.fixed.size:
            pull += self.fixed
        return pull

    @in_memory_cached
    def row_sizes(self) -> RowSizes:
        """The sizes of the members' rows, for bounds on rounding."""
        return row_sizes(self.X, self.norms, self.weights, self.members)

    @property
    def facts(self) -> Facts:
        """The sizes of loss and rows, C and the regulariser, for bounds on the rounding of sums."""
        sizes = self.row_sizes
        return Facts(self.loss_sizes(sizes.rows), self.C, self.regularizer, sizes)

    def loss_sizes(self, rows: float) -> LossSizes:
        """The sizes of the loss in sums over so many rows, for bounds on rounding."""
        return loss_sizes(self.loss, rows)

    def point_sizes(self, alpha: np.ndarray, *, signs: bool = False) -> PointSizes:
        """The sizes of a dual point, for bounds on rounding; `signs` adds sums of both signs."""
        return point_sizes(
            self.loss, self.y, self.norms, self.weights, self.members, alpha, signs=signs
        )

    def balance(self, alpha: np.ndarray) -> np.ndarray:
        """Return dual variables with the required sum; the array itself if no sum is required."""
        if not self.intercept.constrained:
            return alpha
        return self.intercept.balance(self.pointwise, self.members, alpha)

    @cached_property
    def target_noise(self) -> float:
        """What the last places of targets can amount to in the objective of the C form."""
        sizes = self.point_sizes(np.zeros(self.y.size))
        facts = self.facts
        errors = MarginErrors(0.0, TARGET_UNITS * UNIT, 0.0)
        return self.C * paid_rounding(facts.loss, 0.0, facts.rows, sizes, errors)

    @cached_property
    def terms(self) -> Terms:
        """The problem in the form that compiled kernels take."""
        return Terms(self.X, self.loss, self.y, self.weights, self.norms, self.C, self.penalty)

    def terms_of(self, part: Part) -> Terms:
        """Return the problem of some of the rows, in the numbering of the part's own matrix."""
        return self.restrict_to_part(part).terms

    @cached_property
    def pointwise(self) -> Pointwise:
        """Loss, labels and weights of all rows."""
        return Pointwise(self.loss, self.y, self.weights)

    @cached_property
    def member_terms(self) -> Pointwise:
        """Loss, labels and weights of the members only."""
        return Pointwise(self.loss, self.gather(self.y), self.gather(self.weights))

    def kept_duals(self, alpha: np.ndarray) -> np.ndarray:
        """Return a copy of dual variables that the solver goes on to change.

        If there is room for the dual variables of the best bound, they are copied there, over the
        earlier copy.
        """
        best = self.rooms.best
        if best is None or alpha.shape != best.shape:
            return alpha.copy()
        best[:] = alpha
        return best

    def restrict_to_part(self, part: Part) -> Self:
        """Return the problem of a part of a pass, with all other dual variables fixed."""
        if part.X is self.X:
            return self
        return self.replace_rows(
            part.X, part.pick(self.y), part.pick(self.weights), part.pick(self.norms), part.rows
        )

    def restrict_to_rows(self, X: Rows, chosen: np.ndarray) -> Self:
        """Return the problem of some rows, in any order, whose values are X."""
        members = np.arange(chosen.size, dtype=np.int32)
        if self.members.size < self.y.size:
            # The members ascend: a row takes part if it stands at its place among them.
            places = np.searchsorted(self.members[:-1], chosen)
            members = members[self.members[places] == chosen]
        return self.replace_rows(
            X, self.y[chosen], weights_at(self.weights, chosen), self.norms[chosen], members
        )

    def replace_rows(
        self, X: Rows, y: np.ndarray, weights: np.ndarray, norms: np.ndarray, members: np.ndarray
    ) -> Self:
        """Return the problem of some rows in memory; it reports its objectives in the C form."""
        # The place, its rooms and the user's form of the objective belong to all rows only.
        return replace(
            self,
            X=X,
            y=y.astype(np.float64, copy=False),
            weights=weights,
            norms=norms,
            members=members,
            place=None,
            rooms=NO_ROOM,
            uses_lambda=False,
            share=1.0,
            intercept=self.intercept.block_intercept,
        )

    def gather(self, values: np.ndarray) -> np.ndarray:
        """Return the members' values; the array itself if all rows are members."""
        if values.size in (self.members.size, 0):
            return values
        return values[self.members]

    def scatter(self, values: np.ndarray) -> np.ndarray:
        """Return the members' values as an array over all rows, zero for the others."""
        if values.size == self.y.size:
            return values
        among_all = np.zeros(self.y.size)
        among_all[self.members] = values
        return among_all

    @cached_property
    def is_small(self) -> bool:
        """True if the problem is so small that no compiled code pays."""
        return (
            self.X.is_small
            and has_array_methods(self.loss)
            and (self.place is None or not self.on_files)
        )

    @cached_property
    def in_arrays(self) -> bool:
        """True if NumPy computes sums over the rows, and no compiled kernel."""
        if self.place is not None:
            return self.is_small or self.place.in_arrays
        return in_arrays(self.X) and has_array_methods(self.loss)

    @cached_property
    def values_per_row(self) -> float:
        """Mean number of stored values a row."""
        return max(1.0, self.X.n_values / max(1, self.X.n_rows))

    def describe(self) -> str:
        """Return a line that says which problem this is."""
        return (
            f"{loss_name(self.loss)} loss, {self.members.size:,} rows x "
            f"{self.n_features:,} features, "
            f"C = {self.C:g} (lambda = {self.lam:g}), intercept {self.intercept}"
        )


def make_problem(
    X: Rows | Passes,
    y: np.ndarray,
    loss: Loss,
    *,
    C: float | None = None,
    lam: float | None = None,
    weights: np.ndarray | None = None,
    members: np.ndarray | None = None,
    intercept: InterceptName | Intercept = "none",
    norms: np.ndarray | None = None,
    penalty: Penalty | None = None,
    share: float = 1.0,
    rooms: Rooms = NO_ROOM,
    kind: type[Problem] = Problem,
    **own: Any,
) -> Problem:
    """Assemble a problem from rows and options that are already checked.

    Parameters
    ----------
    X : Dense, CSR or Passes
        Rows with a `bias` that is non-zero exactly when there is an intercept; or passes over all
        of such rows, in a place of their own.
    y : ndarray of shape (n_all,)
        -1 and +1 for classification losses, targets otherwise.
    weights : ndarray of shape (n_all,), optional
        Non-negative, at least one member's positive.
    members : ndarray, optional
        Ascending row numbers; all rows when left out.
    norms : ndarray of shape (n_all,), optional
        Squared row norms, to be shared between problems over the same rows.
    intercept : {"none", "regularized", "free"} or an intercept
        A name stands for the intercept whose virtual feature has the value of the rows' `bias`.
    penalty : Penalty, optional
        Half the squared norm when left out.
    share : float, default=1.0
        The factor of objectives in the C form for their report.
    rooms : Rooms, optional
        Memory that solvers over files may use.
    kind : type, default=Problem
        What is made; `own` are its further fields.

    Raises
    ------
    ValueError
        The intercept is unknown or does not work with the rows, or C and lam do not fit together.
    """
    place = None
    if isinstance(X, Passes):
        place = X
        X = place.X
    rows.check_layout(X)
    count = X.n_rows
    made = make_intercept(intercept, X.bias)
    if made.scale != X.bias:
        raise ValueError(
            f"intercept {str(made)!r} does not work with a virtual feature of value {X.bias:g}"
        )

    # The rows that take part, and C, which lambda and their number define.
    dtype = np.int32 if count < 2**31 else np.int64
    if members is None and place is not None:
        members = place.members
    if members is None:
        chosen = np.arange(count, dtype=dtype)
    else:
        chosen = np.ascontiguousarray(members, dtype=dtype)
    n = chosen.size
    C, _ = resolve_C(C, lam, n)

    # Rows of weight zero take no part.
    s = np.empty(0)
    if weights is not None:
        s = np.ascontiguousarray(weights, dtype=np.float64)
    if s.size:
        heavy = s[chosen] > 0.0
        if not heavy.all():
            chosen = chosen[heavy]

    # Over files labels are kept in few bytes.
    number: type[np.number] = np.float64
    if place is not None and place.reads_files and is_classification(loss):
        number = label_type(y)
    if norms is None:
        norms = squared_norms(X) if place is None else place.norms()
    return kind(
        X=X,
        y=np.ascontiguousarray(y, dtype=number),
        loss=loss,
        C=C,
        weights=s,
        norms=norms,
        members=chosen,
        intercept=made,
        n=n,
        uses_lambda=lam is not None,
        penalty=L2() if penalty is None else penalty,
        share=share,
        place=place,
        rooms=rooms,
        **own,
    )


def label_type(y: np.ndarray) -> type[np.int8 | np.int16 | np.int32]:
    """Return the type with the fewest bytes that holds labels, or class numbers."""
    most = max(float(y.max(initial=0)), -float(y.min(initial=0)))
    return next(kind for kind in (np.int8, np.int16, np.int32) if most <= np.iinfo(kind).max)


def is_classification(loss: Loss) -> bool:
    """Return True if labels are -1 and +1 for this loss."""
    return traits_of(loss).task == "classification"
