"""What a linear model can hand over about itself: a proof, a card; and how it learns and forgets.

A model that learns further rows, or forgets some, begins where the old model ended, and is certified for the rows
there are. A card holds the facts about a model that an auditor asks for, as Markdown or JSON.

Rows are forgotten without a copy of the others. A model in memory keeps its problems over all rows of the fit, whose
members become fewer, and what passes over them have found (:mod:`saddlesvm.answers.steps`). The remaining rows are
put together where something asks for them, and after many of them are gone. Other models have a fit that begins where
they stand.
"""

from __future__ import annotations

import hashlib
import json
import platform
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from saddlesvm import __version__
from saddlesvm.answers.steps import KeptPoint, can_come_nearer, followed
from saddlesvm.data.door import check_design, encoded, has_columns
from saddlesvm.estimators.automatic_C import made_automatic
from saddlesvm.estimators.canonical import make_canonical
from saddlesvm.estimators.proofs import Proof, prove
from saddlesvm.estimators.proven import Data, checked_data, problems_of, weights_of
from saddlesvm.multiclass.linear_fit import End, FitRows
from saddlesvm.multiclass.splits import SPLITS
from saddlesvm.problem.certificate import Evaluation
from saddlesvm.problem.loss import is_smooth, loss_name
from saddlesvm.problem.losses import make_loss
from saddlesvm.problem.penalties import holds_square
from saddlesvm.problem.problem import Problem, is_classification
from saddlesvm.rows.layouts import as_rows
from saddlesvm.rows.passes import InMemory
from saddlesvm.rows.scores import dense_weights
from saddlesvm.solvers.automatic.auto import FINISH, Auto

FEWEST = 0.7  # share of the rows of a fit below which a fit to the remaining ones, put together, follows


@dataclass
class Remaining:
    """Rows of a fit that a model still has, and its points over them; no points where only a fit leads on.

    Attributes
    ----------
    data : Data
        All rows of the fit.
    rows : ndarray of shape (m,)
        The numbers of the remaining ones, ascending.
    points : list of KeptPoint
        One for each sub-problem.
    """

    data: Data
    rows: np.ndarray
    points: list[KeptPoint]

    def part(self) -> Data:
        """The remaining rows: a copy, where some are gone."""
        return self.data if self.rows.size == self.data.X.shape[0] else part(self.data, self.rows)


def part(data: Data, rows: np.ndarray) -> Data:
    """Some of the rows, in memory."""
    weights = None if data.sample_weight is None else np.asarray(data.sample_weight)[rows]
    return Data(data.X[rows], np.asarray(data.y)[rows], weights)


def joined(first: Data, second: Data) -> Data:
    """The rows of both, one below the other; a weight that is not given is 1 where the others are."""
    either = sparse.issparse(first.X) or sparse.issparse(second.X)
    X = sparse.vstack([first.X, second.X], format="csr") if either else np.concatenate([first.X, second.X])
    y = np.concatenate([np.asarray(first.y), np.asarray(second.y)])
    if first.sample_weight is None and second.sample_weight is None:
        return Data(X, y, None)
    own = [np.ones(one.X.shape[0]) if one.sample_weight is None else one.sample_weight for one in (first, second)]
    return Data(X, y, np.concatenate(own))


def remaining_of(model: Any, data: Data, ended: bool) -> Remaining | None:
    """All rows of a fitted model, ready to be forgotten; None for models and problems that need a fit for that. `ended`
    says that the data are those of the last fit in this process, which has left its problems behind.

    These are models whose options ask for the course of a fit, or for more than weights; and problems whose constants
    depend on the number of rows, or whose dual variables have a given sum.
    """
    constant = model.lam is None and model.class_weight is None
    if not (constant and model.multi_class in SPLITS and _asks_for_weights(model)):
        return None
    ends: list[End] = model.ends_of_fits() if ended else []
    problems = [one.problem for one in ends] or problems_of(model, data)
    if problems is None or len(problems) != len(model.certificates_) or not all(map(_holds, problems)):
        return None
    own = _have_duals(model)
    if not own and not can_come_nearer(problems[0]):
        return None
    facts = zip(problems, weights_of(model, problems[0].scale), model.certificates_, strict=True)
    factors = [one.equations for one in ends] or [None] * len(problems)
    points = [
        KeptPoint(problem, w, model.duals_of(k) / problem.C if own else None, certificate, equations=factors[k])
        for k, (problem, w, certificate) in enumerate(facts)
    ]
    return Remaining(data, np.arange(data.X.shape[0]), points)


def _asks_for_weights(model: Any) -> bool:
    """Whether the options of a model ask for its weights alone, and not for more, or for the course of a fit."""
    asked = (model.max_iter, model.max_time, model.checkpoint, model.callbacks or None)
    plain = all(one is None for one in asked) and model.keep == "best" and model.gap == 0.0
    plain = plain and not model.probability and made_automatic(model.C) is None
    return plain and isinstance(model._made_solver(), Auto)


def _holds(problem: Problem) -> bool:
    """Whether a point of the problem can be kept."""
    alone = type(problem) is Problem and not problem.intercept.constrained and not problem.fixed.size
    return alone and problem.penalty.identity() and isinstance(problem.passes, InMemory)


def _have_duals(model: Any) -> bool:
    """Whether the dual variables of a model are a solver's own, and not those of its weights."""
    return hasattr(model, "dual_coef_") and not (
        is_smooth(model.check_options()) and FINISH in vars(model).get("phases_", {})
    )


class Change(NamedTuple):
    """Fewer rows, and a model of each sub-problem, whose dual variables are those of these rows."""

    left: Remaining
    models: list[Evaluation]

    def holds(self, tol: float) -> bool:
        """Whether all relative gaps are at most `tol`."""
        return all(one.certificate.relative_gap <= tol for one in self.models)

    def start(self) -> dict[str, Any]:
        """Where a fit goes on from, as its arguments: the dual variables, or the weights where these alone count."""
        if self.left.points[0].alpha is None:
            intercepts = np.array([one.intercept for one in self.models])
            return {"coef_init": np.array([one.coef for one in self.models]), "intercept_init": intercepts}
        pairs = zip(self.models, self.left.points, strict=True)
        duals = [sparse.csr_array(point.problem.C * one.alpha[None]) for one, point in pairs]
        return {"dual_coef_init": sparse.vstack(duals, format="csr")}


def without(left: Remaining, gone: np.ndarray, tol: float) -> Change | None:
    """The rows without those that a mask of shape (m,) selects, and models of them; None where there are no points, or
    few rows would be left, or a class without any."""
    if not left.points or left.rows.size - gone.sum() < FEWEST * left.data.X.shape[0]:
        return None
    everywhere = np.zeros(left.data.X.shape[0], dtype=bool)
    everywhere[left.rows[gone]] = True
    for problem in (point.problem for point in left.points):
        y = problem.y[problem.members[~everywhere[problem.members]]]
        if not y.size or (is_classification(problem.loss) and not y.min() < 0.0 < y.max()):
            return None
    points, found = zip(*(point.without(everywhere, tol) for point in left.points), strict=True)
    rows = left.rows[~gone]
    return Change(Remaining(left.data, rows, [*points]), [replace(one, alpha=one.alpha[rows]) for one in found])


def with_more(model: Any, left: Remaining, more: Data) -> Change | None:
    """The rows with further ones behind them, and models of all; None where there are no points, or for labels of
    another class."""
    classes = getattr(model, "classes_", None)
    if not left.points or has_columns(more.y) or not (classes is None or np.isin(more.y, classes).all()):
        return None
    data, n = joined(left.data, more), left.data.X.shape[0]
    posed = model.training_problems(data.y, data.sample_weight, data.X.shape[0])
    first, new = left.points[0].problem, model.rows_for_parts(more.X, 1)
    ready = FitRows(as_rows(data.X, first.scale), np.concatenate([first.norms, new.norms]), first.threads)
    points, found = [], []
    for sub, point in zip(posed.problems, left.points, strict=True):
        problem = model.part_problem(sub, posed, ready)
        added = problem.members[np.searchsorted(problem.members, n) :]
        point, one = point.within(problem.among(np.concatenate([point.problem.members, added])), added.size, model.tol)
        points.append(point)
        found.append(one)
    rows = np.concatenate([left.rows, np.arange(n, data.X.shape[0])])
    return Change(Remaining(data, rows, points), [replace(one, alpha=one.alpha[rows]) for one in found])


def fingerprint(data: Data) -> str:
    """The hash of rows and labels that :func:`saddlesvm.checker.fingerprint` gives; several columns are hashed as they
    are."""
    X = sparse.csr_array(check_design(data.X).X)
    X.sum_duplicates()
    X.eliminate_zeros()
    y = np.asarray(data.y)
    named = "\n".join(map(str, y.tolist())).encode() if y.dtype.kind in "OUS" else y.astype("<f8").tobytes()
    counts, places, values = np.diff(X.indptr).astype("<i8"), X.indices.astype("<u8"), X.data.astype("<f8")
    parts = [counts.tobytes(), places.tobytes(), values.tobytes(), named]
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()


def chosen(rows: Any, n: int) -> np.ndarray:
    """The mask of n rows that numbers or a mask select, shape (n,).

    Raises
    ------
    ValueError
        They are neither, or beyond the rows; or none, or all, are meant.
    """
    given = np.atleast_1d(np.asarray(rows))
    if given.dtype == bool:
        if given.shape != (n,):
            raise ValueError(f"a mask of rows must have {n} entries, one for each row; got {given.size}")
        found = given
    else:
        if given.size and given.dtype.kind not in "iu":
            raise ValueError(f"rows must be whole numbers or a mask; got {given.dtype}")
        beyond = given[(given < -n) | (given >= n)]
        if beyond.size:
            raise ValueError(f"there is no row {beyond[0]}: the data have {n} rows")
        found = np.zeros(n, dtype=bool)
        found[given.astype(np.intp)] = True
    if not found.any() or found.all():
        raise ValueError(f"rows names {int(found.sum())} of {n} rows: name at least one, and leave at least one")
    return found


def fit_on(
    model: Any,
    data: Data,
    kept: np.ndarray | slice,
    added: int,
    entry: dict[str, Any],
    start: dict[str, Any] | None = None,
) -> None:
    """Fit a model to changed rows from where it stands, and write down the change.

    Parameters
    ----------
    model : LinearSVC or LinearSVR
    data : Data
        The rows that there are now: `kept` of the old ones, then as many as were `added`.
    kept : ndarray of bool or slice
    added : int
    entry : dict
        What the log says beside the rows that are left, and the digest.
    start : dict, optional
        Arguments of the fit: where it begins, if not where the model stands.
    """
    before, begin = list(getattr(model, "log_", ())), start or _start(model, data, kept, added)
    if start is not None or not (begin and _follow(model, data, begin)):
        model.fit(data.X, data.y, sample_weight=data.sample_weight, **begin)
    _write_down(model, before, data.X.shape[0], entry)


def take_change(model: Any, change: Change, entry: dict[str, Any]) -> None:
    """Let a model have the rows of a change, and its certified models of them."""
    before, (left, models) = list(getattr(model, "log_", ())), change
    _take_over(model, models, [point.problem for point in left.points])
    model.keep_rows(left)
    _round(model)
    _write_down(model, before, left.rows.size, entry)


def _write_down(model: Any, before: list[str], rows: int, entry: dict[str, Any]) -> None:
    """Add an entry to the log, about a change that leaves so many rows."""
    logged = entry | {"left": int(rows), "digest": getattr(model, "digest_", None)}
    model.log_ = np.array([*before, json.dumps(logged)])


def _follow(model: Any, data: Data, start: dict[str, Any]) -> bool:
    """Whether the optimum of the changed rows is certified from the start, by a few passes over them; the model is then
    the one of these rows. Models whose options ask for the course of a fit, or for more than weights, have a fit."""
    if not _asks_for_weights(model):
        return False
    problems = problems_of(model, data)
    if problems is None or len(problems) != len(model.certificates_):
        return False
    found, duals, W = [], start.get("dual_coef_init"), weights_of(model, problems[0].scale)
    for k, (problem, w, old) in enumerate(zip(problems, W, model.certificates_, strict=True)):
        alpha = None if duals is None else dense_weights(duals[[k]])[0] / problem.C
        one = followed(problem, w, alpha, model.tol * abs(old.primal) / problem.unit)
        if one is None or not one.certificate.relative_gap <= model.tol:
            return False
        found.append(one)
    _take_over(model, found, problems)
    model._data = data
    _round(model)
    return True


def _take_over(model: Any, found: list[Evaluation], problems: list[Problem]) -> None:
    """Let a model be the one that was found, as if by its own fit."""
    model.take_over(found, problems, sorted(vars(model).get("phases_", {})))
    vars(model).pop("_stream", None)


def _round(model: Any) -> None:
    """Round the weights of a model, where its options ask for that."""
    if model.canonical is not None:
        make_canonical(model, model.training_data())


def _start(model: Any, data: Data, kept: np.ndarray | slice, added: int) -> dict[str, Any]:
    """The start of the fit: the multipliers of the rows that stay, where their bounds are as they were, or the
    weights; nothing where the problem has another shape."""
    split = model.multi_class
    classes = getattr(model, "classes_", None)
    whole = has_columns(data.y) or classes is None or encoded(np.asarray(data.y))[0].size == classes.size
    if split not in (*SPLITS, "multinomial") or not whole:
        return {}
    weights = {"coef_init": np.atleast_2d(model.coef_), "intercept_init": np.atleast_1d(model.intercept_)}
    duals, same = getattr(model, "dual_coef_", None), model.lam is None and not model.class_weight
    wanted = same and split in SPLITS and _have_duals(model)
    if not (wanted and holds_square(model._penalty().penalty) and model._made_solver().begins_at_duals):
        return weights
    A = sparse.csr_array(duals)[:, kept] if sparse.issparse(duals) else np.asarray(duals)[:, kept]
    if added:
        none = np.zeros((A.shape[0], added))
        A = sparse.hstack([A, none], format="csr") if sparse.issparse(A) else np.hstack([A, none])
    return {"dual_coef_init": A}


__all__ = ["Accountable"]

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba")
Card = dict[str, dict[str, Any]]


def card_of(model: Any, X: Any = None, y: Any = None) -> Card:
    """The facts, by section."""
    found = model.certificate_
    data = model.data_at_hand()
    classes = getattr(model, "classes_", None)
    card: Card = {
        "model": {"kind": type(model).__name__, "features": int(model.n_features_in_), "outcome": str(model.outcome_)},
        "problem": {
            "loss": loss_name(make_loss(model.loss)),
            **model._strength(),
            "penalty": model.penalty if isinstance(model.penalty, str) else str(model.penalty),
            "intercept": model._intercept_kind(),
            **({} if classes is None else {"classes": classes.tolist(), "multi_class": model.multi_class}),
        },
        "certificate": {
            "objective at most": found.primal,
            "least possible at least": found.dual,
            "relative gap": found.relative_gap,
            "form": found.form,
        },
    }
    if data is not None:
        card["data"] = {"rows": int(data.X.shape[0]), "sha256": fingerprint(data)}
    if model.canonical is not None:
        digest = getattr(model, "digest_", None)
        card["canonical weights"] = {"bits": model.canonical, "digest": digest, "not proven": model.ambiguous_}
    if X is not None:
        card["accuracy"] = _accuracy(model, X, y)
    if len(getattr(model, "log_", ())):
        card["changes"] = {str(k + 1): json.loads(one) for k, one in enumerate(model.log_.tolist())}
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        card["model"]["feature names"] = [str(one) for one in names]
    card["versions"] = {
        "saddlesvm": __version__,
        "Python": platform.python_version(),
        **{name: version(name) for name in PACKAGES},
    }
    return card


def _accuracy(model: Any, X: Any, y: Any) -> dict[str, Any]:
    """The score of some rows and, of a classifier that can prove labels, the optimum's interval."""
    found = {"rows": len(np.asarray(y)), "score": float(model.score(X, y))}
    if getattr(model, "classes_", None) is None or model.multilabel_ or model.data_at_hand() is None:
        return found
    right, proven = model.predict(X) == np.asarray(y), model.is_proven(X)
    low, high = float((right & proven).mean()), 1.0 - float((~right & proven).mean())
    return found | {"accuracy of the exact optimum, proven": [low, high]}


def markdown(card: Card, as_json: bool = False) -> str:
    """A card as Markdown: a heading and a table a section; or as JSON."""
    if as_json:
        return json.dumps(card, indent=2, default=str)
    lines = [f"# {card['model']['kind']}"]
    for section, facts in card.items():
        lines += ["", f"## {section.capitalize()}", "", "| fact | value |", "|---|---|"]
        lines += [f"| {name} | {_cell(value)} |" for name, value in facts.items()]
    return "\n".join(lines) + "\n"


def _cell(value: Any) -> str:
    text = json.dumps(value, default=str) if isinstance(value, (dict, list)) else str(value)
    return text.replace("|", "\\|").replace("\n", " ")


class Accountable:
    """A linear estimator that accounts for its model."""

    def proof(self, X: Any, y: Any = None, sample_weight: Any = None, *, read: dict[str, Any] | None = None) -> Proof:
        """A proof that the model is near its optimum, to write as JSON; anybody can check it without this package.

        It contains the problem, the weights, the multipliers that the weights do not determine, a hash of the data, and
        two claims: an upper bound on the objective of the model, and a lower bound on the objective of every model.
        :mod:`saddlesvm.checker` computes the claims in fractions. Its file needs only Python: ``python checker.py
        proof.json DATA``.

        Parameters
        ----------
        X : array-like, sparse matrix or Store of shape (n, d)
            The training rows.
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional
        read : dict, optional
            How the checker reads the data file, instead of guessing: `label` (number of the column, from 0), `drop`
            (numbers of other columns), `header` (whether there is one), `zero_based` (whether indices count from 0).

        Returns
        -------
        dict

        Raises
        ------
        ValueError
            The data do not fit the model, or there are no proofs for its loss or ``multi_class``. Proofs exist for
            every loss of the package, with "ovr", "ovo" and "multinomial".

        Examples
        --------
        >>> from saddlesvm import LinearSVC
        >>> from saddlesvm.data import load_bundled
        >>> notes = load_bundled("banknote")
        >>> model = LinearSVC(loss="hinge", random_state=0).fit(notes.X, notes.y)
        >>> proof = model.proof(notes.X, notes.y)
        >>> high, low, gap = map(float.fromhex, proof["claim"])
        >>> gap <= model.certificate_.gap
        True
        """
        return prove(self, X, y, sample_weight, read)

    def forget(self, rows: Any, X: Any = None, y: Any = None, sample_weight: Any = None) -> Self:
        """Remove training rows from the model, certified: others can check the erasure.

        The fit begins at the present weights. With `canonical`, the weights and ``digest_`` equal those of a fit that
        never saw the rows, byte for byte. ``log_`` gets an entry with the hash of the rows.

        Parameters
        ----------
        rows : array-like of int, or mask of shape (n,)
            The rows to forget.
        X, y, sample_weight : optional
            The data of the fit, as in :meth:`fit`; the rows of a store are read into memory. By default the data of the
            last fit in this process.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            There are no such rows, or no data.

        Examples
        --------
        >>> from saddlesvm import LinearSVC
        >>> from saddlesvm.data import load_bundled
        >>> notes = load_bundled("banknote")
        >>> model = LinearSVC(canonical=20).fit(notes.X, notes.y)
        >>> never_seen = LinearSVC(canonical=20).fit(notes.X[10:], notes.y[10:])
        >>> model.forget(range(10)).digest_ == never_seen.digest_
        True
        """
        model: Any = self
        left = self._left_of(X, y, sample_weight)
        gone = chosen(rows, left.rows.size)
        lost = part(left.data, left.rows[gone])
        what = {"what": "forgot", "rows": int(gone.sum()), "sha256": fingerprint(lost)}
        change = without(left, gone, model.tol)
        if change is not None and change.holds(model.tol):
            take_change(self, change, what)
        else:
            data = part(left.data, left.rows[~gone])
            fit_on(self, data, ~gone, 0, what, None if change is None else change.start())
        return self

    def update(self, X: Any, y: Any, sample_weight: Any = None, *, former: tuple[Any, ...] | None = None) -> Self:
        """Add training rows to the model, certified; see :meth:`forget`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
        y : array-like of shape (m,)
        sample_weight : array-like of shape (m,), optional
        former : tuple of X, y and, optionally, sample_weight
            The data of the fit; by default the data of the last fit in this process.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            Invalid data, or no data of the fit.

        Examples
        --------
        >>> from saddlesvm import LinearSVC
        >>> from saddlesvm.data import load_bundled
        >>> notes = load_bundled("banknote")
        >>> model = (
        ...     LinearSVC(canonical=20)
        ...     .fit(notes.X[10:], notes.y[10:])
        ...     .update(notes.X[:10], notes.y[:10])
        ... )
        >>> model.digest_ == LinearSVC(canonical=20).fit(notes.X, notes.y).digest_
        True
        """
        model: Any = self
        given: Any = former or (None, None)
        left, more = self._left_of(*given), checked_data(self, X, y, sample_weight)
        what = {"what": "added", "rows": int(more.X.shape[0]), "sha256": fingerprint(more)}
        change = with_more(self, left, more)
        if change is not None and change.holds(model.tol):
            take_change(self, change, what)
        else:
            data = joined(left.part(), more)
            fit_on(self, data, slice(None), more.X.shape[0], what, None if change is None else change.start())
        return self

    def card(self, X: Any = None, y: Any = None, *, format: Literal["markdown", "json"] = "markdown") -> str:
        """A summary for auditors: problem, certificate, digest, hash of the data, classes, versions.

        Parameters
        ----------
        X, y : optional
            Rows to measure the accuracy on. For a classifier with its training data, the card also has a proven
            interval for the accuracy of the exact optimum.
        format : {"markdown", "json"}, default="markdown"

        Returns
        -------
        str

        Raises
        ------
        ValueError
            The format is unknown, or the rows do not fit the model.

        Examples
        --------
        >>> from saddlesvm import LinearSVC
        >>> from saddlesvm.data import load_bundled
        >>> notes = load_bundled("banknote")
        >>> model = LinearSVC(canonical=20, random_state=0).fit(notes.X, notes.y)
        >>> print(model.card().splitlines()[0])
        # LinearSVC
        """
        check_is_fitted(self)
        if format not in ("markdown", "json"):
            raise ValueError(f"format must be 'markdown' or 'json'; got {format!r}")
        return markdown(card_of(self, X, y), format == "json")

    def _left_of(self, X: Any, y: Any, sample_weight: Any = None) -> Remaining:
        """The rows that the model has: those given, checked, or those of the last fit."""
        model: Any = self
        check_is_fitted(self)
        left: Remaining | None = model.rows_left() if X is None else None
        if left is None:
            data = model.data_or_own(X, y, sample_weight)
            left = remaining_of(self, data, X is None) or Remaining(data, np.arange(data.X.shape[0]), [])
        return left
