"""``C="auto"``: fits along C, the error of each, and a fit at the best C.

Leave-one-out estimates give the errors. If there are too many features for the factor that an
estimate needs, or if no estimate can be trusted, folds give them.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone, is_classifier

from saddlesvm.answers.row_estimates import FACTORED
from saddlesvm.data.door import Design, check_design
from saddlesvm.data.inputs import split_store
from saddlesvm.data.label_checks import refuse_columns
from saddlesvm.estimators.base import option_of
from saddlesvm.estimators.C_range import ENDS, GAP
from saddlesvm.estimators.certified_path import CertifiedPath
from saddlesvm.estimators.fitted import Fitted, former_fit, give_features
from saddlesvm.estimators.held_out import HeldOut
from saddlesvm.estimators.leave_one_out import (
    LeaveOneOut,
    Truth,
    bounds_of_error,
    estimate_rows,
)
from saddlesvm.estimators.path_search import PathSearch
from saddlesvm.estimators.solve import fit_copy
from saddlesvm.runtime.allowed import (
    SHARE,
    STRENGTH,
    WHOLE,
    Allowed,
    check,
    names,
    numbers,
    parse_options,
)
from saddlesvm.runtime.clock import clock, end_of_fit, limit_to_share
from saddlesvm.runtime.data_types import LabelsLike, RowsLike
from saddlesvm.runtime.interrupts import raise_interrupts

if TYPE_CHECKING:
    from saddlesvm.estimators.base import Estimator

RULES = ("best", "one_standard_error")

COARSE = 5  # values of C, at most, that are estimated before those beside the best
RISEN = 2.0  # standard errors above the smallest error at which no larger C is tried
# Standard errors of the error by which neighbours must differ for a value between them to be
# estimated; guessed: the estimates are for the same rows, so they share most of the noise.
NOISE = 0.25
# Relative difference of the log losses up to which two models count as the same; guessed.
SAME = 0.1

TIME_OF_CHOICE = 0.75  # share of max_time for the choice; the last fit has the rest; guessed

Judged = tuple[float, float, float]  # the error at a value of C, its standard error, the log loss


@dataclass(frozen=True)
class AutomaticC:
    """Options of the choice of C, as in ``C="auto:rule=one_standard_error,high=1e4"``.

    Parameters
    ----------
    rule : {"best", "one_standard_error"}, default="best"
        "best": the C with the smallest error (in a tie, with the smallest log loss, then the
        smallest C). "one_standard_error": the smallest C whose error is within a
        standard error of the best.
    low, high : float, default=1e-3, 1e3
        The ends between which C is chosen.
    gap : float, default=1e-2
        The relative gap within which the fits are whose errors are compared.
    size : int, default=13
        Values of C, evenly spaced in log C, among which the choice is. Up to five of them are
        judged first, upwards until the error has clearly risen; then values beside the best, until
        neighbours differ by noise only.

    Examples
    --------
    >>> from saddlesvm import AutomaticC, LinearSVC
    >>> from saddlesvm.data import load_bundled
    >>> notes = load_bundled("banknote")
    >>> how = AutomaticC(low=1e-3, high=1.0, gap=0.1, size=4)
    >>> model = LinearSVC(C=how, random_state=0).fit(notes.X, notes.y)
    >>> bool(1e-3 <= model.C_ <= 1.0)
    True
    """

    rule: str = "best"
    low: float = ENDS[0]
    high: float = ENDS[1]
    gap: float = GAP
    size: int = 13

    def __post_init__(self) -> None:
        check("the rule of C='auto'", self.rule, names(*RULES))
        for name in ("low", "high"):
            check(f"{name} of C='auto'", getattr(self, name), STRENGTH)
        check("gap", self.gap, SHARE)
        if not self.low < self.high:
            raise ValueError(
                f"low must be smaller than high in C='auto'; got {self.low!r} and {self.high!r}"
            )
        check(
            "size of C='auto'", self.size, numbers("a whole number of at least 2", 2, kinds=WHOLE)
        )


@dataclass(frozen=True, eq=False)
class Choice:
    """The evidence for the choice of C.

    Attributes
    ----------
    C : float
        The chosen C.
    Cs : ndarray of shape (k,)
        The values that were judged.
    estimates : list of LeaveOneOut
        The estimates at each of `Cs`; none if folds made the choice.
    errors : ndarray of shape (k,)
        Estimated leave-one-out error at each C, infinite if it is unreliable; or the error of
        folds.
    standard_errors : ndarray of shape (k,)
        For independent rows, or of the mean of the folds.
    error : float
        At the chosen C.
    path : CertifiedPath
        The fits at `Cs`, and the bounds between them.
    by_folds : bool
        True if folds made the choice: there are more than 2,500 features, or no estimate was
        reliable.
    error_bounds : tuple of float
        Proven bounds on the leave-one-out error at the chosen C, computed when they are first asked
        for, in about the time of a fit; :func:`leave_one_out` has narrower bounds. Infinite if
        folds made the choice, or the training data are not at hand (after loading).

    Examples
    --------
    >>> from saddlesvm import LinearSVC
    >>> from saddlesvm.data import load_bundled
    >>> notes = load_bundled("banknote")
    >>> model = LinearSVC(C="auto:low=1e-3,high=1.0,gap=0.1,size=4", random_state=0).fit(
    ...     notes.X, notes.y
    ... )
    >>> model.choice_.C == model.C_, model.C_ in model.choice_.Cs
    (True, True)
    """

    C: float
    Cs: np.ndarray
    estimates: list[LeaveOneOut]
    errors: np.ndarray
    standard_errors: np.ndarray
    path: CertifiedPath
    by_folds: bool = False

    @property
    def error(self) -> float:
        """The error at the chosen C."""
        return float(self.errors[np.flatnonzero(self.Cs == self.C)[0]])

    @cached_property
    def error_bounds(self) -> tuple[float, float]:
        """Proven bounds on the leave-one-out error at the chosen C."""
        fitted = self.path.fit_at(self.C)
        if self.by_folds or fitted.data is None:
            return -np.inf, np.inf
        return bounds_of_error(fitted, *fitted.data)


def parse_automatic(C: object) -> AutomaticC | None:
    """Return the options of ``C="auto"``, also with options in the text; None for any other C.

    Raises
    ------
    ValueError
        An option is unknown, or not allowed.
    """
    if isinstance(C, AutomaticC):
        return C
    if not isinstance(C, str):
        return None
    name, _, listed = C.partition(":")
    if name != "auto":
        return None
    return AutomaticC(**parse_options(listed, [one.name for one in fields(AutomaticC)], "C='auto'"))


AUTOMATIC = Allowed("'auto'", lambda given: parse_automatic(given) is not None)


def choose_C(
    model: Estimator,
    how: AutomaticC,
    X: Any,
    y: Any,
    sample_weight: ArrayLike | None = None,
) -> Choice:
    """Return the C with the smallest error: leave-one-out, or of folds.

    Parameters
    ----------
    model : LinearModel
        Supplies the options.
    how : AutomaticC
    X, y, sample_weight
        As in the estimator's ``fit``.

    Raises
    ------
    ValueError
        Bad data or options.
    """
    # Options that the choice does not work with.
    X, y, sample_weight = split_store(X, y, sample_weight)
    if option_of(model, "multi_class") != "ovr":
        raise ValueError(
            f"C='auto' needs multi_class='ovr'; got {model.multi_class!r}: use LinearSVCCV for "
            "others"
        )
    if model.lam is not None:
        raise ValueError("give either C or lam (lambda), not both: C = 1 / (lambda n)")
    if getattr(model, "penalty", "l2") != "l2":
        raise ValueError(f"C='auto' needs penalty='l2'; got {model.penalty!r}: use LinearSVCCV")
    template = clone(model).set_params(C=1.0, checkpoint=None)
    design = check_design(X)
    judge = Judge(how, (design, y, sample_weight), by_folds=design.shape[1] > FACTORED)
    with limit_to_share(TIME_OF_CHOICE):
        path = PathSearch(template, (X, y, sample_weight), how.gap).visit(judge.next_C)
    judged = judge.judged
    # The time may have ended before the only fit was judged.
    if not judged:
        judged[int(np.flatnonzero(judge.grid == path.Cs[0])[0])] = (np.inf, 0.0, np.nan)
    places = sorted(judged)
    errors, noise, log_losses = np.array([judged[k] for k in places]).T
    Cs = judge.grid[places]
    chosen = float(Cs[_choose_place(how.rule, errors, noise, log_losses)])
    estimates = [judge.estimates[k] for k in sorted(judge.estimates)]
    return Choice(chosen, Cs, estimates, errors, noise, path, judge.by_folds)


class Judge:
    """Errors of fits at values of C, by leave-one-out estimates or by folds, and the next value.

    Parameters
    ----------
    how : AutomaticC
    data : tuple
        Design, y and row weights.
    by_folds : bool
        True if there are no estimates.

    Attributes
    ----------
    grid : ndarray of shape (size,)
    estimates : dict of int to LeaveOneOut
        By the number of the value.
    judged : dict of int to tuple
        The error at a value, its standard error, and the log loss.
    """

    def __init__(
        self,
        how: AutomaticC,
        data: tuple[Design, LabelsLike, ArrayLike | None],
        by_folds: bool,
    ) -> None:
        self.how = how
        self.data = data
        self.by_folds = by_folds
        self.grid = np.geomspace(how.low, how.high, how.size)
        self.estimates: dict[int, LeaveOneOut] = {}
        self.judged: dict[int, Judged] = {}
        self.held_out: HeldOut | None = None

    def next_C(self, fits: dict[float, Fitted]) -> float | None:
        """Judge the fits that are wanted, and return the next C to fit; None if they suffice."""
        while not (self.judged and clock() >= end_of_fit()):
            place = next_place(self.how, self.judged)
            # No estimate is reliable: folds judge the same fits.
            if place is None and not self.by_folds and not _has_trusted(self.judged):
                self.by_folds = True
                self.estimates.clear()
                self.judged.clear()
                place = next_place(self.how, self.judged)
            if place is None:
                break
            C = float(self.grid[place])
            if C not in fits:
                return C
            if self.by_folds:
                self.judged[place] = self._judge_by_folds(fits[C])
            else:
                found = self.estimates[place] = estimate_rows(fits[C], *self.data)
                error = found.error if found.trusted else np.inf
                self.judged[place] = (error, found.standard_error, found.log_loss)
        return None

    def _judge_by_folds(self, fitted: Fitted) -> Judged:
        """Return the error of models with the options of a fit on rows that they have not seen."""
        if self.held_out is None:
            self.held_out = HeldOut(fitted, *self.data)
        folds = self.held_out.folds
        scores = self.held_out.scores(fitted, tol=self.how.gap)
        _, y, sample_weight = self.data
        truth = Truth(fitted, y, sample_weight, len(scores))
        errors = truth.row_errors(scores)
        # The standard error of the folds' means.
        means = [errors[folds == fold].mean() for fold in np.unique(folds[folds >= 0])]
        noise = float(np.std(means, ddof=1) / np.sqrt(len(means)))
        return truth.mean(errors)[0], noise, truth.log_loss(scores)


def next_place(how: AutomaticC, judged: dict[int, Judged]) -> int | None:
    """Return the number of the value to judge next; None if the judged values suffice.

    `judged` has the error, its noise and the log loss of values by their numbers.
    """
    places = sorted(judged)
    errors, noise, log_losses = np.array([judged[k] for k in places]).reshape(-1, 3).T
    coarse = np.unique(
        np.linspace(0, how.size - 1, min(COARSE, how.size)).round().astype(int)
    ).tolist()

    # Coarse values, ascending from the second one: the first is tried below if the second is best.
    ahead = [k for k in coarse[1:] if not places or k > places[-1]]
    if ahead and not _has_risen(errors, noise):
        return int(ahead[0])
    if not _has_trusted(judged):  # any value may be the one that can be trusted
        return next((k for k in range(how.size) if k not in judged), None)

    # Values half-way between the best (or the value that the rule chooses) and a neighbour which is
    # worse by more than noise. Between equal errors of different models, smaller ones may lie.
    for rule in dict.fromkeys((RULES[0], how.rule)):
        at = _choose_place(rule, errors, noise, log_losses)
        if at == 0 and places[0] != 0:
            return max((k for k in coarse if k < places[0]), default=0)
        beside = [one for one in (at - 1, at + 1) if 0 <= one < len(places)]
        for one in sorted(beside, key=lambda k: errors[k]):
            apart = abs(places[one] - places[at])
            worse = errors[one] - errors[at] > NOISE * noise[at]
            other = abs(log_losses[one] - log_losses[at]) > SAME * log_losses[at]
            if apart > 1 and (worse or other):
                nearer = 1 if places[one] > places[at] else -1
                return places[at] + nearer * (apart - apart // 2)
    return None


def _has_risen(errors: np.ndarray, noise: np.ndarray) -> bool:
    """Return True if the error of the largest C is clearly worse than the best, or untrusted."""
    if not np.isfinite(errors).any():
        return False
    best = int(np.argmin(errors))
    return bool(errors[-1] > errors[best] + RISEN * noise[best])


def _has_trusted(judged: dict[int, Judged]) -> bool:
    """Return True if the error of any value is reliable."""
    return any(np.isfinite(error) for error, _, _ in judged.values())


def _choose_place(rule: str, errors: np.ndarray, noise: np.ndarray, log_losses: np.ndarray) -> int:
    """Return the index of the chosen C."""
    best = int(np.argmin(errors))
    if rule == "one_standard_error":
        return int(np.argmax(errors <= errors[best] + noise[best]))
    ties = np.flatnonzero(errors == errors[best])
    of_ties = log_losses[ties]
    return int(ties[0] if np.isnan(of_ties).any() else ties[np.argmin(of_ties)])


def fit_automatically(
    template: Estimator,
    how: AutomaticC,
    X: RowsLike,
    y: LabelsLike,
    sample_weight: ArrayLike | None = None,
) -> Fitted:
    """Choose C, and fit there from the path's model.

    A checkpoint is that of the last fit.
    """
    if not is_classifier(template):
        refuse_columns(y, "C='auto'")
    with raise_interrupts():
        choice = choose_C(template, how, X, y, sample_weight)
    options = clone(template).set_params(C=choice.C)
    working = clone(options).set_params(warm_start=True)
    start = former_fit(choice.path.fit_at(choice.C))
    fitted = fit_copy(working, X, y, sample_weight, start=start)
    # The model has the given options: a fit of a model from a file begins at zero.
    fitted = replace(fitted, template=give_features(options, fitted.template))
    return replace(fitted, choice=choice, chosen_C=choice.C)
