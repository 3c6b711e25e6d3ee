"""A certified path: a model and a proof for every C between two ends, from a handful of fits."""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics import accuracy_score, check_scoring, r2_score

from saddlesvm.data.door import check_design
from saddlesvm.estimators.fitted import (
    Fitted,
    copy_options,
    decide,
    fitted_value,
    make_model,
    problem_C,
)
from saddlesvm.fit.outcome import Outcome
from saddlesvm.problem.certificate import Certificate
from saddlesvm.problem.intercepts import Absent, Regularized
from saddlesvm.problem.path_bounds import Interval, Knot
from saddlesvm.problem.penalties import L2, modulus
from saddlesvm.problem.regularizer import Regularizer
from saddlesvm.rows.scores import dense_weights, linear_scores
from saddlesvm.runtime.data_types import LabelsLike, RowsLike

GRID = 61  # values of C in a default grid: ten per factor of 10, over six such factors


@dataclass(frozen=True, eq=False)
class CertifiedPath:
    r"""A model and a proof for every C between two ends.

    Attributes
    ----------
    knots : list of Knot
        The fits, ascending in C; objectives in the C form.
    models : list of LinearSVC or LinearSVR
        The fitted model of each knot.
    gap : float
        The relative gap that was requested for every C.
    n : int
        Number of rows, which defines :math:`\lambda = 1 / (n C)`.
    uses_lambda : bool
        True if the path was requested in lambda. Certificates are then in the lambda form.
    outcome : Outcome
        CERTIFIED, or why the path ended before every C was proven.
    seconds : float

    Examples
    --------
    >>> from saddlesvm import LinearSVC
    >>> from saddlesvm.data import load_bundled
    >>> notes = load_bundled("banknote")
    >>> model = LinearSVC(random_state=0)
    >>> path = model.path(notes.X, notes.y, C=(1e-2, 1e2), gap=1e-2)
    >>> path.certificate(0.37).relative_gap <= 1e-2
    True
    """

    knots: list[Knot]
    models: list[Any] = field(repr=False)
    gap: float
    n: int
    uses_lambda: bool = False
    outcome: Outcome = Outcome.CERTIFIED
    seconds: float = 0.0

    def __repr__(self) -> str:
        Cs = self.Cs
        ends = "[]"
        if Cs.size:
            ends = f"[{Cs[0]:g} ... {Cs[-1]:g}]"
        return f"CertifiedPath(Cs={ends}, fits={Cs.size}, gap={self.gap:g}, outcome={self.outcome})"

    @property
    def Cs(self) -> np.ndarray:
        """The values of C that were fitted, ascending, shape (fits,)."""
        return np.array([knot.C for knot in self.knots])

    @property
    def fit_gaps(self) -> np.ndarray:
        """The relative gap of each fit, shape (fits,)."""
        return np.array([knot.relative_gap for knot in self.knots])

    @cached_property
    def intervals(self) -> list[Interval]:
        """The proven bounds between neighbouring fits."""
        return [low.until(high) for low, high in pairwise(self.knots)]

    @property
    def proven_gap(self) -> float:
        """The relative gap that holds for every C between the ends."""
        return max(
            (interval.gap for interval in self.intervals), default=self.knots[0].relative_gap
        )

    @property
    def unproven(self) -> list[tuple[float, float]]:
        """The stretches of C without the requested gap; empty for a complete path."""
        return [(one.low.C, one.high.C) for one in self.intervals if one.gap > self.gap]

    def certificates(self, C: float) -> list[Certificate]:
        """The certificate of each sub-problem's model for C."""
        # Objectives in the lambda form are those in the C form, divided by n C.
        unit = 1.0
        form = "C"
        if self.uses_lambda:
            unit = 1.0 / (self.n * C)
            form = "lambda"
        bounds = zip(*self._bounds(C), strict=True)
        return [
            Certificate(float(primal) * unit, float(dual) * unit, form) for primal, dual in bounds
        ]

    def certificate(self, C: float) -> Certificate:
        """Return the certificate of the model for C, all sub-problems as one.

        Its primal is an upper bound on the objective of the model, and its dual a lower bound on
        the objective of every model.

        Raises
        ------
        ValueError
            C is not between the ends.
        """
        parts = self.certificates(C)
        return Certificate.total(parts)

    def coef(self, C: float) -> np.ndarray:
        """Weights of the model for C, of the shape of the estimator's ``coef_``."""
        return self._mix("coef_", C)

    def intercept(self, C: float) -> Any:
        """Intercept of the model for C, of the shape of the estimator's ``intercept_``."""
        return self._mix("intercept_", C)

    def model(self, C: float) -> Any:
        """A fitted estimator for C: the best mixture of its neighbours, with its certificate."""
        return make_model(self.fit_at(C))

    def fit_at(self, C: float) -> Fitted:
        """The fit for C, as a value: the best mixture of its neighbours, with its certificate."""
        k, _ = self._place(C)
        parent = fitted_value(self.models[k])
        # Along a path of lambda the template keeps lambda = 1 / (n C).
        strength = {"C": float(C)}
        if self.uses_lambda:
            strength = {"C": 1.0, "lam": 1.0 / (self.n * C)}
        template = copy_options(parent.template, **strength)
        # The bound at this C counts, not that of the fits beside it.
        outcome = self.outcome
        if self.certificate(C).relative_gap <= self.gap:
            outcome = Outcome.CERTIFIED
        return replace(
            parent,
            template=template,
            coef=np.atleast_2d(self.coef(C)),
            intercept=self.intercept(C),
            duals=self.dual_coef(C),
            C=problem_C(template, self.n),
            certificates=self.certificates(C),
            outcome=outcome,
            proof=None,
        )

    def dual_coef(self, C: float) -> np.ndarray | sparse.csr_array:
        """Return dual variables (C form) that prove the bound at C, shaped as ``dual_coef_``."""
        k, interval = self._place(C)
        if interval is None:
            return self.models[k].dual_coef_
        t = interval.share(C)
        mixed = (1.0 - t) * self.models[k].dual_coef_ + t * self.models[k + 1].dual_coef_
        if sparse.issparse(mixed):
            return sparse.csr_array(mixed)
        return mixed

    def score(
        self, X: RowsLike, y: LabelsLike, Cs: object = None, scoring: object = None
    ) -> np.ndarray:
        """The score of the model for each C: a pass over X for each fit, whatever the number of Cs.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like of shape (n,)
        Cs : array-like of float, optional
            By default ``path.grid()``.
        scoring : str or callable, optional
            As in scikit-learn; costs a pass over X for each C. By default accuracy, or R^2 for
            regression.

        Returns
        -------
        ndarray of shape (number of Cs,)
        """
        grid = self.grid() if Cs is None else np.asarray(Cs, dtype=np.float64)
        if scoring is not None:
            scorer = check_scoring(self.models[0], scoring=scoring)
            return np.array([float(scorer(self.model(C), X, y)) for C in grid])
        measure = accuracy_score if hasattr(self.models[0], "classes_") else r2_score
        design = check_design(X).X
        # A pass over X for each fit; scores for a C between two fits are a mixture of theirs.
        scores = [linear_scores(design, knot.coef, knot.intercept) for knot in self.knots]
        first = fitted_value(self.models[0])
        found = (decide(self._between(scores, C), first.labels, first.multi_class) for C in grid)
        return np.array([float(measure(y, one)) for one in found])

    def best(self, X: RowsLike, y: LabelsLike, Cs: object = None, scoring: object = None) -> float:
        """The C with the best score on X and y, the smallest in a tie; see :meth:`score`."""
        grid = self.grid() if Cs is None else np.asarray(Cs, dtype=np.float64)
        return float(grid[int(np.argmax(self.score(X, y, grid, scoring)))])

    def grid(self, size: int = GRID) -> np.ndarray:
        """Values of C evenly spaced in log C from end to end, shape (size,)."""
        made = np.geomspace(self.knots[0].C, self.knots[-1].C, size)
        return np.clip(made, self.knots[0].C, self.knots[-1].C)

    def _place(self, C: float) -> tuple[int, Interval | None]:
        """Return the knot at or below C, and the interval above it; None if C is the knot's."""
        low = self.knots[0].C
        high = self.knots[-1].C
        if not low <= C <= high:
            raise ValueError(
                f"C must be between {low:g} and {high:g}, the ends of the path; got {C!r}"
            )
        k = bisect.bisect_right(self.Cs.tolist(), C) - 1
        if self.knots[k].C == C:
            return k, None
        return k, self.intervals[k]

    def _bounds(self, C: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the primal and the dual bound of each sub-problem at C."""
        k, interval = self._place(C)
        if interval is None:
            return self.knots[k].primal, self.knots[k].dual
        return interval.bounds(C)

    def _mix(self, name: str, C: float) -> Any:
        """Return the mixture for C of an attribute of the knots' models."""
        return self._between([getattr(model, name) for model in self.models], C)

    def _between(self, values: Sequence[Any], C: float) -> Any:
        """Return the mixture for C of the knots' values."""
        k, interval = self._place(C)
        if interval is None:
            return values[k]
        u = interval.mixture(C)
        return (1.0 - u) * values[k] + u * values[k + 1]


def make_knot(fitted: Fitted, C: float, pulled: np.ndarray, missed: np.ndarray) -> Knot:
    """Return the knot of a fit.

    `pulled` is ``dual_coef_ @ X`` with the virtual feature, shape (k, d + 1), and `missed` how far
    it may be off, shape (k,).
    """
    # What the penalty sees: the weights, and a regularised intercept as one more weight.
    template = fitted.template
    coef = dense_weights(fitted.coef)
    intercept = fitted.intercept
    seen = coef
    seen_pulled = pulled[:, :-1]
    charged = None
    sees_intercept = template.fit_intercept and template.intercept == "regularized"
    if sees_intercept:
        seen = np.hstack([coef, intercept[:, None] / float(template.intercept_scaling)])
        seen_pulled = pulled

    # Another penalty than half a square: bounds between fits use its square part, whose root
    # multiplies both points.
    scaled = template._penalty()
    if not isinstance(scaled.penalty, L2):
        regularizer = Regularizer(scaled.penalty, Absent())
        all_seen = np.hstack([coef, np.zeros_like(coef[:, :1])])
        if sees_intercept:
            regularizer = Regularizer(scaled.penalty, Regularized())
            all_seen = seen
        charged = scaled.share * np.array([regularizer.value(w) for w in all_seen])
        root = math.sqrt(scaled.share * modulus(scaled.penalty))
        led_to = np.stack([regularizer.weights(v) for v in pulled])
        seen = root * seen
        seen_pulled = root * led_to[:, : seen.shape[1]]
        missed = root * missed
    primal = np.array([one.primal for one in fitted.certificates])
    dual = np.array([one.dual for one in fitted.certificates])
    rounding = np.array([one.primal_rounding for one in fitted.certificates])
    return Knot(
        C,
        coef,
        intercept,
        seen,
        np.ascontiguousarray(seen_pulled),
        primal,
        dual,
        rounding,
        missed,
        charged,
    )
