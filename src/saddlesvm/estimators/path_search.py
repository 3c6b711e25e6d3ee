"""The fits of a certified path: the next C, and the starting point of each fit."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike
from sklearn.base import clone

from saddlesvm.data.door import check_design
from saddlesvm.data.inputs import split_store
from saddlesvm.estimators.base import epochs_between_calls, option_of
from saddlesvm.estimators.C_range import check_model, ends_for
from saddlesvm.estimators.certified_path import CertifiedPath, make_knot
from saddlesvm.estimators.fitted import (
    Fitted,
    dual_row,
    former_fit,
    give_features,
    make_model,
    problem_C,
)
from saddlesvm.estimators.on_cluster import refuse_cluster
from saddlesvm.estimators.solve import fit_copy
from saddlesvm.fit.outcome import NotCertifiedWarning, Outcome
from saddlesvm.multiclass import splits
from saddlesvm.multiclass.splits import FormerFit
from saddlesvm.problem.bounds import gamma, radii
from saddlesvm.problem.path_bounds import Knot
from saddlesvm.problem.problem import resolve_C
from saddlesvm.rows import layouts as rows
from saddlesvm.runtime.allowed import SHARE, STRENGTH, check
from saddlesvm.runtime.clock import clock, end_of_fit
from saddlesvm.runtime.data_types import RowsLike
from saddlesvm.runtime.interrupts import catch_interrupts
from saddlesvm.runtime.threads import Schedule, wait_for_some

if TYPE_CHECKING:
    from saddlesvm.estimators.base import Estimator
    from saddlesvm.runtime.data_types import LabelsLike

# Share of the wanted gap that each fit proves itself; the rest is for the Cs between.
FIT_SHARE = 0.2
NARROW = 1e-9  # C2 / C1 - 1 of neighbours; no fit is made between closer ones

Made = tuple[Knot, Fitted]


class Stopper:
    """The user's callbacks; if a callback asks to stop, the whole path ends."""

    def __init__(self, callbacks: Sequence[Any], stop: threading.Event) -> None:
        self.callbacks = callbacks
        self.stop = stop
        self.every = epochs_between_calls(callbacks)

    def __call__(self, record: object) -> bool:
        asked = [callback(record) for callback in self.callbacks]
        if any(asked):
            self.stop.set()
        return self.stop.is_set()

    def tick(self, epoch: float, estimate: float, seconds: float) -> None:
        """Tell the callbacks that listen to slices of work."""
        for callback in self.callbacks:
            if hasattr(callback, "tick"):
                callback.tick(epoch, estimate, seconds)


class PathSearch:
    """Fits along a path until every C between its ends is proven.

    Parameters
    ----------
    template : LinearModel
        The estimator with its options.
    data : tuple
        X, y and the row weights.
    gap : float
        The relative gap to prove for every C.
    """

    def __init__(
        self,
        template: Any,
        data: tuple[Any, Any, Any],
        gap: float,
    ) -> None:
        self.template = template
        self.data = data
        self.gap = gap
        self.began = clock()
        design = check_design(data[0])
        norms = design.norms()
        bias = float(template.intercept_scaling) if template._intercept_kind() != "none" else 0.0
        self.design = design.rows._replace(bias=bias)
        self.n = design.shape[0]
        self.radii = radii(norms + bias * bias)
        self.jobs = effective_n_jobs(template.n_jobs)
        self.outcome = Outcome.CERTIFIED

    def run(self, ends: tuple[float, float], uses_lambda: bool) -> CertifiedPath:
        """Fit both ends, and between them until every stretch is proven."""
        with catch_interrupts() as stop, warnings.catch_warnings():
            warnings.simplefilter("ignore", NotCertifiedWarning)  # the path warns once, at the end
            fitted = self._divide(self._fit_ends(ends, stop), stop)
        path = self._path(fitted, uses_lambda)
        if path.outcome is not Outcome.CERTIFIED:
            warnings.warn(
                f"the path ended early ({path.outcome}): a relative gap of {path.proven_gap:.2g} "
                f"is proven for every C, {self.gap:.2g} was asked for; path.unproven has the "
                "stretches. "
                f"{path.outcome.advice}",
                NotCertifiedWarning,
                stacklevel=4,
            )
        return path

    def visit(self, next_C: Callable[[dict[float, Any]], float | None]) -> CertifiedPath:
        """Fit at each C that `next_C` returns, given the fits so far by their C, until None.

        Stretches between two fits are not divided: the path's gap is the gap that it proves.
        """
        fitted: list[Made] = []
        with catch_interrupts() as stop, warnings.catch_warnings():
            warnings.simplefilter("ignore", NotCertifiedWarning)  # the last fit of a choice warns
            while not fitted or not self._is_over(fitted, stop):
                C = next_C({knot.C: found for knot, found in fitted})
                if C is None:
                    break
                # Begin between the fits with the next smaller and the next larger C.
                low = max((one for one in fitted if one[0].C < C), key=knot_C, default=None)
                high = min((one for one in fitted if one[0].C > C), key=knot_C, default=None)
                made = self._fit(C, low, high, self.jobs, stop)
                fitted = _sort_by_C([*fitted, made])
        path = self._path(fitted, uses_lambda=False)
        return replace(path, gap=max(self.gap, path.proven_gap), outcome=self.outcome)

    def _path(self, fitted: Sequence[Made], uses_lambda: bool) -> CertifiedPath:
        """Return the path of these fits, with its outcome."""
        knots = [knot for knot, _ in fitted]
        models = [make_model(found) for _, found in fitted]
        path = CertifiedPath(
            knots, models, self.gap, self.n, uses_lambda, self.outcome, clock() - self.began
        )
        # No limit ended the search, but a stretch is still open.
        complete = path.outcome is not Outcome.CERTIFIED or path.proven_gap <= self.gap
        return path if complete else replace(path, outcome=Outcome.NO_PROGRESS)

    def _needs_fit(self, low: Made, high: Made) -> bool:
        """Return True if a fit between two neighbours would help to prove the gap there."""
        # A fit that does not prove the gap itself is no use, nor one between such close neighbours.
        if max(low[0].relative_gap, high[0].relative_gap) > self.gap:
            return False
        if high[0].C <= low[0].C * (1.0 + NARROW):
            return False
        return low[0].until(high[0]).gap > self.gap

    def _fit_ends(self, ends: tuple[float, float], stop: threading.Event) -> list[Made]:
        """Fit both ends, the upper from the lower; return a single fit if the path ends with it."""
        fitted = [self._fit(ends[0], None, None, self.jobs, stop)]
        if not self._is_over(fitted, stop):
            fitted.append(self._fit(ends[1], fitted[0], None, self.jobs, stop))
        return fitted

    def _divide(self, fitted: list[Made], stop: threading.Event) -> list[Made]:
        """Fit half-way in each unproven stretch until all are proven; return all fits."""
        stretches: list[tuple[Made, Made, int]] = [
            (low, high, self.jobs) for low, high in pairwise(fitted)
        ]
        under_way: dict[Future[Made | None], tuple[Made, Made, int]] = {}
        with Schedule(self.jobs, stop) as schedule:
            while not self._is_over(fitted, stop):
                # A fit in the middle of each unproven stretch; both halves then share its threads.
                for low, high, threads in stretches:
                    if self._needs_fit(low, high):
                        C = low[0].until(high[0]).middle()
                        future = schedule.add(self._make, C, low, high, threads, stop)
                        under_way[future] = (low, high, max(1, threads // 2))
                if not under_way:
                    break
                stretches = []
                for task in wait_for_some(under_way):
                    low, high, threads = under_way.pop(task)
                    made = task.result()
                    if made is not None:
                        fitted.append(made)
                        stretches += [(low, made, threads), (made, high, threads)]
        # Fits that ended during the last round count, too.
        late = [task.result() for task in under_way]
        return _sort_by_C([*fitted, *(one for one in late if one is not None)])

    def _make(
        self, C: float, low: Made, high: Made, threads: int, stop: threading.Event
    ) -> Made | None:
        """Return a fit, or None if the search is over."""
        if stop.is_set() or self._seconds_left() == 0.0:
            return None
        return self._fit(C, low, high, threads, stop)

    def _fit(
        self, C: float, low: Made | None, high: Made | None, threads: int, stop: threading.Event
    ) -> Made:
        """Fit at C, begun between two fits, at the lower one if there is no other, or at zero."""
        left = self._seconds_left()
        shown = {"C": C, "lam": None, "tol": FIT_SHARE * self.gap}
        options = clone(self.template).set_params(**shown)
        working = clone(options).set_params(
            warm_start=True,
            n_jobs=threads,
            callbacks=[Stopper(self.template.callbacks or (), stop)],
            max_time=None if left is None else max(left, 1e-3),
        )

        # Begin between the neighbours.
        start = None
        if low is not None:
            start = _begin_between(C, problem_C(options, self.n), low, high)
        X, y, weights = self.data
        fitted = fit_copy(working, X, y, weights, start=start)
        fitted = replace(fitted, template=give_features(options, working))
        if fitted.duals is None:  # no dual point was found that is better than zero
            fitted = replace(fitted, duals=np.zeros((len(fitted.coef), self.n)))
        if fitted.outcome is Outcome.INTERRUPTED:
            stop.set()
        return make_knot(fitted, C, *self._pull(fitted)), fitted

    def _pull(self, fitted: Fitted) -> tuple[np.ndarray, np.ndarray]:
        """Return ``dual_coef_ @ X`` with the virtual feature, (k, d + 1), and its rounding."""
        k = fitted.duals.shape[0]
        members = np.arange(self.n, dtype=np.int32 if self.n < 2**31 else np.int64)
        pulled = np.zeros((k, self.design.n_features + 1))
        missed = np.zeros(k)
        for place in range(k):
            beta = dual_row(fitted.duals, place)
            rows.add_rows(self.design, members, beta, pulled[place])
            # The rounding of a sum of n terms |beta_i| |x_i|.
            missed[place] = gamma(self.n + 8.0) * float(np.abs(beta) @ self.radii)
        return pulled, missed

    def _seconds_left(self) -> float | None:
        """Return the seconds that are left of max_time; None without a limit."""
        limit = self.template.max_time
        return None if limit is None else max(min(self.began + limit, end_of_fit()) - clock(), 0.0)

    def _is_over(self, fitted: Sequence[Made], stop: threading.Event) -> bool:
        """Return True, and set the outcome, if Ctrl-C, a limit or a failed fit ends the search."""
        if stop.is_set():
            self.outcome = Outcome.INTERRUPTED
        elif self._seconds_left() == 0.0:
            self.outcome = Outcome.TIME_LIMIT
        elif any(found.outcome is Outcome.FAILED for _, found in fitted):
            self.outcome = Outcome.FAILED
        return self.outcome is not Outcome.CERTIFIED


def knot_C(made: Made) -> float:
    """Return the C of a fit."""
    return made[0].C


def _sort_by_C(fitted: Sequence[Made]) -> list[Made]:
    """Return fits in ascending order of C."""
    return sorted(fitted, key=knot_C)


def _take_end(fitted: Fitted) -> FormerFit:
    """Return the end of a fit, for the next to start from."""
    reached = former_fit(fitted)
    assert reached is not None
    return reached


def _begin_between(C: float, problems_C: float, low: Made, high: Made | None) -> FormerFit:
    """Return the starting point of a fit at C: the best weights of its neighbours' mixtures.

    `problems_C` is the C of its problems, in which dual variables are.
    """
    start = _take_end(low[1])
    if high is None:
        return start
    between = low[0].until(high[0])
    other = _take_end(high[1])
    u = between.mixture(C)
    t = between.share(C)
    return other._replace(
        coef=(1.0 - u) * start.coef + u * other.coef,
        intercept=(1.0 - u) * start.intercept + u * other.intercept,
        duals=(1.0 - t) * start.duals + t * other.duals,
        C=problems_C,
    )


def certified_path(
    template: Estimator,
    X: RowsLike,
    y: LabelsLike,
    C: tuple[float, float] | None,
    lam: tuple[float, float] | None,
    gap: float,
    sample_weight: ArrayLike | None = None,
) -> CertifiedPath:
    """Return a model and a proof for every C, or every lambda; see :meth:`LinearSVC.path`."""
    # Options that a path does not work with.
    check("gap", gap, SHARE)
    refuse_cluster(X, "a path", "fit a model for each C")
    check_model(template)
    if template.warm_start:
        raise ValueError("a path makes many fits, each from its neighbours: leave warm_start out")
    if option_of(template, "multi_class") in splits.JOINT:
        raise ValueError(f"a path needs multi_class='ovr' or 'ovo'; got {template.multi_class!r}")

    # The ends, in C or in lambda.
    if C is not None and lam is not None:
        raise ValueError(
            "give the ends of a path in C or in lam (lambda), not both: C = 1 / (lambda n)"
        )
    if lam is not None:
        check_ends("lam", lam)
    if C is not None:
        check_ends("C", C)
    X, y, sample_weight = split_store(X, y, sample_weight)
    search = PathSearch(template, (X, y, sample_weight), gap)
    if lam is not None:
        # The largest lambda is the smallest C.
        ends = (resolve_C(None, lam[1], search.n)[0], resolve_C(None, lam[0], search.n)[0])
    elif C is not None:
        ends = C
    else:
        ends = ends_for(template, X, y, sample_weight)
    return search.run((float(ends[0]), float(ends[1])), lam is not None)


def check_ends(name: str, ends: tuple[float, float]) -> None:
    """Raise ValueError unless these are the two ends of a path, ascending, in C or in lambda."""
    if np.ndim(ends) != 1 or len(ends) != 2:
        raise ValueError(
            f"{name} of a path is its two ends, {name}=(smallest, largest); got {name}={ends!r}"
        )
    for end in ends:
        check(name, end, STRENGTH)
    if not ends[0] < ends[1]:
        raise ValueError(f"the ends of a path must ascend; got {ends!r}")
