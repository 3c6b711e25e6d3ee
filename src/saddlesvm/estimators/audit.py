"""An audit of a fitted model: rows that are probably mislabelled, what each row does, contradictions, separability."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone

from saddlesvm.answers.changed import Separability, contradictions, separability
from saddlesvm.answers.changed_rows import GroupChanges, group_changes, moved_scores, row_moves, rows_in_turn
from saddlesvm.answers.labels import label_verdicts
from saddlesvm.answers.vicinity import Vicinity
from saddlesvm.data.door import check_design, check_labels
from saddlesvm.estimators.leave_one_out import Estimation, LeaveOneOut, OwnRows, rows_of_groups
from saddlesvm.estimators.linear_model import LinearModel
from saddlesvm.fit.outcome import NotCertifiedWarning
from saddlesvm.rows.scores import dense_weights
from saddlesvm.runtime.threads import part_of_a_search

HARDER = 1e3  # times C, for a fit that separates where the first did not
SCORES_TOGETHER = 2**22  # scores of decisions without rows in turn that are held at once
HARDER_ITERATIONS = 200  # of that fit


@dataclass(frozen=True, eq=False)
class GroupAudit:
    """The effects of leaving out each of g groups of rows, between proven bounds.

    Attributes
    ----------
    names : ndarray of shape (g,)
    moves_low, moves_high : ndarray of shape (g,)
        Of the length by which it moves the weights.
    changes_low, changes_high : ndarray of shape (g,)
        Of the number of decisions that it changes.
    errors_low, errors_high : ndarray of shape (g,)
        Of the error on the rows of the group, of the model without it.
    stable : ndarray of shape (m,), bool
        Which decisions no single group can change.
    """

    names: np.ndarray
    moves_low: np.ndarray = field(repr=False)
    moves_high: np.ndarray = field(repr=False)
    changes_low: np.ndarray = field(repr=False)
    changes_high: np.ndarray = field(repr=False)
    errors_low: np.ndarray = field(repr=False)
    errors_high: np.ndarray = field(repr=False)
    stable: np.ndarray = field(repr=False)


@dataclass(frozen=True, eq=False)
class Audit:
    """The findings of an audit. Bounds are proven; they are infinite where nothing is proven.

    Attributes
    ----------
    suspects : ndarray of shape (k,)
        Rows whose label is probably wrong, worst first: a model trained without the row gives it another class.
    suggested : ndarray of shape (k,)
        The class that this model gives to each of them.
    margins, margins_low, margins_high : ndarray of shape (n,)
        Score of the labelled class minus the best other score, in a model without the row; and proven bounds.
    leave_one_out : LeaveOneOut
    moves_low, moves_high : ndarray of shape (n,)
        Proven bounds on the distance that leaving out each row moves the weights (of all classes together).
    stable : ndarray of shape (m,), bool
        Whether each decision stays the same whichever single row is left out.
    groups : GroupAudit or None
        The effect of leaving out whole groups; None without groups, or where nothing is proven.
    contradictions : list of ndarray
        Rows with the same values and different labels, the largest groups first.
    separability : dict
        The proof for each class against the others (for two classes, of the second against the first).
    notes : list of str
        What is not proven, and why.

    Examples
    --------
    >>> from saddlesvm import LinearSVC, audit
    >>> from saddlesvm.data import load_bundled
    >>> notes = load_bundled("banknote")
    >>> y = notes.y.copy()
    >>> y[7] = 1 - y[7]
    >>> found = audit(LinearSVC(loss="logistic").fit(notes.X, y), notes.X, y)
    >>> 7 in found.suspects[:10]
    True
    """

    suspects: np.ndarray
    suggested: np.ndarray
    margins: np.ndarray = field(repr=False)
    margins_low: np.ndarray = field(repr=False)
    margins_high: np.ndarray = field(repr=False)
    leave_one_out: LeaveOneOut = field(repr=False)
    moves_low: np.ndarray = field(repr=False)
    moves_high: np.ndarray = field(repr=False)
    stable: np.ndarray = field(repr=False)
    groups: GroupAudit | None = field(repr=False)
    contradictions: list[np.ndarray]
    separability: dict[Any, Separability]
    notes: list[str]


def audit(
    model: LinearModel, X: Any, y: Any = None, groups: Any = None, *, sample_weight: Any = None, decisions: Any = None
) -> Audit:
    """Find rows that are probably mislabelled, contradictions, and the influence of rows and groups on a fitted model.

    Parameters
    ----------
    model : LinearSVC
        Fitted to these rows, with ``multi_class="ovr"`` and ``penalty="l2"``. A loss with curvature (logistic,
        squared_hinge) proves most.
    X, y, sample_weight
        The data that the model was fitted to.
    groups : array-like of shape (n,), optional
        Names of groups of rows, such as patients or sources.
    decisions : array-like or sparse matrix of shape (m, d), optional
        Rows whose predicted labels are examined; by default the training rows.

    Returns
    -------
    Audit

    Raises
    ------
    ValueError
        The rows are not those of the fit, or the model is of another kind.

    Examples
    --------
    >>> from saddlesvm import LinearSVC, audit
    >>> from saddlesvm.data import load_bundled
    >>> heart = load_bundled("heart")
    >>> found = audit(
    ...     LinearSVC(loss="logistic", C=0.1).fit(heart.X, heart.y), heart.X, heart.y
    ... )
    >>> bool(found.stable.mean() > 0.9), found.contradictions
    (True, [])
    """
    own = OwnRows(model, X, y, sample_weight, "an audit")
    if own.codes is None:
        raise ValueError(
            f"an audit needs a classifier with one label a row; this {type(model).__name__} has no classes, or several "
            "labels a row"
        )
    asked = own.design if decisions is None else check_design(decisions, model).X
    names = np.empty(0) if groups is None else check_labels(groups, own.design.shape[0])
    loo = Estimation(own).run()
    margins, low, high, rivals = _own_margins(loo, own.codes)
    suspects = np.flatnonzero(margins < 0.0)
    suspects = suspects[np.argsort(margins[suspects], kind="stable")]
    near, notes, repeats = own.all_vicinities, [], contradictions(own.design, own.codes)
    if near is None:
        notes.append("influence is not proven: the loss has no known curvature, or there are too many features")
    suggested, of_rows = own.model.classes_[rivals[suspects]], _of_rows(near, own, asked)
    of_groups, separable = _of_groups(near, own, asked, names), _separability(own, repeats)
    return Audit(suspects, suggested, margins, low, high, loo, *of_rows, of_groups, repeats, separable, notes)


def _own_margins(loo: LeaveOneOut, codes: np.ndarray) -> tuple[np.ndarray, ...]:
    """The score of the own class above the best other one: estimate, bounds, and the best other class."""
    if loo.margins.ndim == 1:
        signs = np.where(codes == 1, 1.0, -1.0)
        ends = np.sort(np.stack([signs * loo.low, signs * loo.high]), axis=0)
        return signs * loo.margins, ends[0], ends[1], 1 - codes
    rows = np.arange(codes.size)

    def above(own: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        others = others.copy()
        others[rows, codes] = -np.inf
        return own[rows, codes] - others.max(axis=1), others.argmax(axis=1)

    margins, rivals = above(loo.margins, loo.margins)
    return margins, above(loo.low, loo.high)[0], above(loo.high, loo.low)[0], rivals


def _of_rows(near: list[Vicinity] | None, own: OwnRows, asked: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bounds of the move of all classes' weights together, and the decisions that no single row changes.

    The rows that move the weights most are left out in turn; of the others the largest move counts for all.
    """
    n, m = own.design.shape[0], asked.shape[0]
    if near is None:
        return np.zeros(n), np.full(n, np.inf), np.zeros(m, dtype=bool)
    moves = [row_moves(one) for one in near]
    most = np.max([one.most for one in moves], axis=0)
    far = np.argsort(-most, kind="stable")[: rows_in_turn(near[0], int(np.isinf(most).sum()))]
    base = np.column_stack([_exact(one, asked) for one in near])
    reach = [moved_scores(one, move.most, far, asked) for one, move in zip(near, moves, strict=True)]
    around = np.stack(reach, axis=1)[:, None]
    changed = _changed(base, base[:, None] - around, base[:, None] + around)[1][:, 0]
    ends = {end: [getattr(one, end).copy() for one in moves] for end in ("low", "high")}
    size = max(1, SCORES_TOGETHER // base.size)
    for start in range(0, far.size, size):
        some = far[start : start + size]
        found = [group_changes(one, [np.array([i]) for i in some], asked) for one in near]
        changed |= _changed(base, *_stacked(found))[1].any(axis=1)
        for end, every in ends.items():
            for own_moves, one in zip(every, found, strict=True):
                own_moves[some] = getattr(one.moves, end)
    low, high = (np.sqrt(np.sum(np.square(every), axis=0)) for every in ends.values())
    return low, high, ~changed


def _exact(near: Vicinity, asked: Any) -> np.ndarray:
    """Scores of the vicinity's point."""
    return np.asarray(asked @ near.w[:-1]).ravel() + near.problem.scale * near.w[-1]


def _of_groups(near: list[Vicinity] | None, own: OwnRows, asked: Any, names: np.ndarray) -> GroupAudit | None:
    """Moves, changed decisions and errors of the groups, and which decisions no group changes."""
    if not names.size or near is None:
        return None
    kinds, members = rows_of_groups(names)
    found = [group_changes(one, members, asked) for one in near]
    base = np.column_stack([_exact(one, asked) for one in near])
    surely, perhaps = _changed(base, *_stacked(found))
    inside = found if asked is own.design else [group_changes(one, members, own.design) for one in near]
    low, high = _stacked(inside)
    errors = np.array([_errors(low[rows, k], high[rows, k], own, rows) for k, rows in enumerate(members)])
    least, most = (np.sqrt(np.sum([getattr(one.moves, end) ** 2 for one in found], axis=0)) for end in ("low", "high"))
    changes, (fewest, largest) = (surely.sum(axis=0), perhaps.sum(axis=0)), errors.T
    return GroupAudit(kinds, least, most, *changes, fewest, largest, np.asarray(~perhaps.any(axis=1)))


def _stacked(found: list[GroupChanges]) -> tuple[np.ndarray, np.ndarray]:
    """The bounds of the scores of all sub-problems, each of shape (m, groups, k)."""
    return np.stack([one.low for one in found], axis=2), np.stack([one.high for one in found], axis=2)


def _changed(base: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The decisions that certainly, and that possibly, differ from the base's, shape (m, groups).

    `base` has shape (m, k), `low` and `high` (m, groups, k).
    """
    if base.shape[1] == 1:
        positive = base > 0.0
        return np.where(positive, high[:, :, 0] <= 0.0, low[:, :, 0] > 0.0), np.where(
            positive, low[:, :, 0] <= 0.0, high[:, :, 0] > 0.0
        )
    best = base.argmax(axis=1)
    rows = np.arange(len(best))
    others_low, others_high = low.copy(), high.copy()
    others_low[rows, :, best] = others_high[rows, :, best] = -np.inf
    return high[rows, :, best] < others_low.max(axis=2), low[rows, :, best] <= others_high.max(axis=2)


def _errors(low: np.ndarray, high: np.ndarray, own: OwnRows, rows: np.ndarray) -> tuple[float, float]:
    """Bounds of the error on the rows of a group without it."""
    assert own.codes is not None
    verdicts = label_verdicts(low, high, own.codes[rows])
    return float(verdicts.low.mean()), float(verdicts.high.mean())


def _separability(own: OwnRows, repeats: list[np.ndarray]) -> dict[Any, Separability]:
    """The proven separability of each class from the rest; a harder fit is tried where the model's proves nothing."""
    found, classes = {}, own.model.classes_
    harder: Any = None
    repeated = own.count == 1 and bool(repeats)
    for k in range(own.count):
        name = classes[1] if own.count == 1 else classes[k]
        signs = own.posed.problems[k].y
        if repeated:
            found[name] = Separability(False, 0.0, 0.0, "rows with the same values have different labels")
            continue
        found[name] = _proven(own, own.model, k, signs)
        if found[name].separable is None:
            harder = _harder(own) if harder is None else harder
            again = _proven(own, harder, k, signs)
            if again.separable is not None or again.high < found[name].high:
                found[name] = again
    return found


def _proven(own: OwnRows, model: Any, k: int, signs: np.ndarray) -> Separability:
    w, b = dense_weights(model.coef_)[k], float(np.ravel(model.intercept_)[k])
    return separability(own.design, signs, w, b, model.duals_of(k))


def _harder(own: OwnRows) -> Any:
    """A fit with a larger C, as far as some iterations lead."""
    model = clone(own.model).set_params(
        C=HARDER * own.model._fitted_C, lam=None, loss="squared_hinge", max_iter=HARDER_ITERATIONS, probability=False,
        checkpoint=None, class_weight=None, warm_start=False, solver="auto",
    )  # fmt: skip
    with warnings.catch_warnings(), part_of_a_search():
        warnings.simplefilter("ignore", NotCertifiedWarning)
        return model.fit(own.design, own.y)
