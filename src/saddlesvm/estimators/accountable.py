"""What a linear model can hand over about itself: canonical weights, a proof, a card; and how it learns and forgets.

Canonical weights are those of the exact optimum, correctly rounded; they have a digest. A model that learns further
rows, or forgets some, begins where the old model ended, and is certified for the rows there are. A card holds the facts
about a model that an auditor asks for, as Markdown or JSON.
"""

from __future__ import annotations

import hashlib
import json
import platform
import warnings
from importlib.metadata import version
from typing import Any, Literal, Self

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from saddlesvm import __version__
from saddlesvm.answers.active_set import Rounded, digest, polished, rounded
from saddlesvm.answers.proof import have_steps, proof_nearest
from saddlesvm.answers.steps import followed
from saddlesvm.data import inputs
from saddlesvm.data.door import encoded, has_columns
from saddlesvm.estimators.automatic_C import made_automatic
from saddlesvm.estimators.proofs import Change, Proof, Remaining, joined, part, prove, remaining_of, with_more, without
from saddlesvm.estimators.proven import Data, checked_data, closer, problems_of, weights_of
from saddlesvm.fit.outcome import NotCertifiedWarning
from saddlesvm.multiclass.splits import SPLITS
from saddlesvm.problem.certificate import Certificate, Point, evaluate
from saddlesvm.problem.crammer_singer import JointProblem
from saddlesvm.problem.loss import is_smooth, loss_name
from saddlesvm.problem.losses import make_loss
from saddlesvm.problem.penalties import holds_square
from saddlesvm.rows.scores import dense_weights
from saddlesvm.runtime.allowed import WHOLE, Allowed, check
from saddlesvm.solvers.automatic.auto import FINISH, Auto

__all__ = ["Accountable"]

MOST_BITS = 44  # of a rounded weight: eight fewer than a float's, for what rounding hides
BITS = Allowed(
    f"a whole number of bits from 1 to {MOST_BITS}, or None",
    lambda given: given is None or (isinstance(given, WHOLE) and bool(1 <= given <= MOST_BITS)),
)
HANDED_ON = ("dual_coef_", "_phases", "_fitted_C")


def check_canonical(model: Any) -> None:
    """Raise ValueError for an option `canonical` that no fit could have."""
    check("canonical", model.canonical, BITS)
    if model.canonical is None:
        return
    if made_automatic(model.C) is not None:
        raise ValueError(f"canonical rounds the optimum for one value of C: give a number as C; got C={model.C!r}")
    if getattr(model, "probability", False):
        raise ValueError(f"canonical does not round curves: set probability=False; got {model.probability!r}")


def make_canonical(model: Any, data: Data | None) -> None:
    """Round the weights of a model that was just fitted to those of the exact optimum.

    Warns
    -----
    NotCertifiedWarning
        A boundary of the grid is within what is proven of a weight: the model stays as it was fitted.
    """
    if data is None:
        raise ValueError("canonical needs the training rows in memory, as arrays")
    own, problems, found = _rounded(model, data)
    model.ambiguous_ = found.ambiguous
    if found.ambiguous:
        words = f"canonical={model.canonical}: the rounding of {found.ambiguous} of {found.places.size} weights is not "
        words += "proven, and the weights are left as they were fitted. Ask for fewer bits, or for a smooth loss."
        warnings.warn(words, NotCertifiedWarning, stacklevel=5)
        return
    values = found.values
    W = np.column_stack([values[:, :-1], values[:, -1] / (problems[0].scale or 1.0)])
    duals = _duals(own, problems) if own is not model else [None] * len(problems)
    each = [evaluate(one, Point(w, alpha), given_offset=True) for one, w, alpha in zip(problems, W, duals, strict=True)]
    vars(model).update({name: vars(own)[name] for name in HANDED_ON if name in vars(own)})
    if own is model:
        A = [one.C * found.alpha[None] for one, found in zip(problems, each, strict=True)]
        model.dual_coef_ = A[0] if len(A) == 1 else sparse.vstack([sparse.csr_array(one) for one in A], format="csr")
    model.coef_ = values[:, :-1].reshape(np.shape(dense_weights(model.coef_)) if np.ndim(model.coef_) > 1 else -1)
    model.intercept_ = values[:, -1] if np.ndim(model.intercept_) else float(values[0, -1])
    model.certificates_ = [one.certificate for one in each]
    model.certificate_ = Certificate.total(model.certificates_)
    model.digest_ = digest_of(model, found)


def _rounded(model: Any, data: Data) -> tuple[Any, list[Any], Rounded]:
    """A model that is closer to the optimum, its problems, and the rounded weights; the model itself where steps from
    its weights lead there."""
    own, problems = model, problems_of(model, data)
    if problems is not None and have_steps(problems):
        known = proof_nearest(problems, weights_of(model, problems))
    else:
        own, problems, known = closer(model, data)
    if isinstance(problems[0], JointProblem):
        raise ValueError(f"canonical is for multi_class 'ovr' and 'ovo'; got {model.multi_class!r}")
    found = rounded(*known.weight_bounds(), model.canonical)
    if found.ambiguous:
        W = weights_of(own, problems) if own is not model else [part.center for part in known.parts]
        duals = _duals(own, problems) if own is not model else [None] * len(problems)
        known.parts[:] = [polished(*given) for given in zip(problems, known.parts, W, duals, strict=True)]
        found = rounded(*known.weight_bounds(), model.canonical)
    return own, problems, found


def _duals(own: Any, problems: list[Any]) -> list[np.ndarray | None]:
    """The dual variables of each problem, divided by C; None where the model has none."""
    known = hasattr(own, "dual_coef_")
    return [own.duals_of(k) / one.C if known else None for k, one in enumerate(problems)]


def digest_of(model: Any, found: Rounded) -> str:
    """The digest of a model's rounded weights: classes as JSON has them, features by name, or by number."""
    classes = [json.dumps(one) for one in getattr(model, "classes_", np.empty(0)).tolist()]
    names = getattr(model, "feature_names_in_", range(model.n_features_in_))
    return digest(found, classes, [json.dumps(str(one)) for one in names])


def gathered(X: Any, y: Any, sample_weight: Any) -> Data:
    """Rows of a cluster, brought together.

    Raises
    ------
    ValueError
        They are files that the workers read.
    """
    if not hasattr(X, "compute"):
        raise ValueError("canonical needs the training rows in memory: read the files into arrays")
    here = [one.compute() if hasattr(one, "compute") else one for one in (X, y, sample_weight)]
    return Data(inputs.as_design(here[0]), *here[1:])


def fingerprint(data: Data) -> str:
    """The hash of rows and labels that :func:`saddlesvm.checker.fingerprint` gives; several columns are hashed as they
    are."""
    X = sparse.csr_array(inputs.as_design(data.X))
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
    model.take_over(models, [point.problem for point in left.points], sorted(vars(model).get("phases_", {})))
    vars(model).pop("_stream", None)
    model.keep_rows(left)
    if model.canonical is not None:
        make_canonical(model, model.training_data())
    _write_down(model, before, left.rows.size, entry)


def _write_down(model: Any, before: list[str], rows: int, entry: dict[str, Any]) -> None:
    """Add an entry to the log, about a change that leaves so many rows."""
    logged = entry | {"left": int(rows), "digest": getattr(model, "digest_", None)}
    model.log_ = np.array([*before, json.dumps(logged)])


def _follow(model: Any, data: Data, start: dict[str, Any]) -> bool:
    """Whether the optimum of the changed rows is certified from the start, by a few passes over them; the model is then
    the one of these rows. Models whose options ask for the course of a fit, or for more than weights, have a fit."""
    asked = (model.max_iter, model.max_time, model.checkpoint, model.callbacks or None)
    plain = all(one is None for one in asked) and model.keep == "best" and model.gap == 0.0
    plain = plain and not getattr(model, "probability", False) and made_automatic(model.C) is None
    if not plain or not isinstance(model._made_solver(), Auto):
        return False
    problems = problems_of(model, data)
    if problems is None or len(problems) != len(model.certificates_):
        return False
    found, duals, W = [], start.get("dual_coef_init"), weights_of(model, problems)
    for k, (problem, w, old) in enumerate(zip(problems, W, model.certificates_, strict=True)):
        alpha = None if duals is None else dense_weights(duals[[k]])[0] / problem.C
        one = followed(problem, w, alpha, model.tol * abs(old.primal) / problem.unit)
        if one is None or not one.certificate.relative_gap <= model.tol:
            return False
        found.append(one)
    model.take_over(found, problems, sorted(vars(model).get("phases_", {})))
    vars(model).pop("_stream", None)
    model._data = data
    if model.canonical is not None:
        make_canonical(model, data)
    return True


def _start(model: Any, data: Data, kept: np.ndarray | slice, added: int) -> dict[str, Any]:
    """The start of the fit: the multipliers of the rows that stay, where their bounds are as they were, or the
    weights; nothing where the problem has another shape."""
    split = getattr(model, "multi_class", "ovr")
    classes = getattr(model, "classes_", None)
    whole = has_columns(data.y) or classes is None or encoded(np.asarray(data.y))[0].size == classes.size
    if split not in (*SPLITS, "multinomial") or not whole:
        return {}
    weights = {"coef_init": np.atleast_2d(model.coef_), "intercept_init": np.atleast_1d(model.intercept_)}
    duals, same = getattr(model, "dual_coef_", None), model.lam is None and not getattr(model, "class_weight", None)
    wanted = same and split in SPLITS and duals is not None
    wanted = wanted and not (is_smooth(model.check_options()) and FINISH in vars(model).get("phases_", {}))
    if not (wanted and holds_square(model._penalty().penalty) and model._made_solver().begins_at_duals):
        return weights
    A = sparse.csr_array(duals)[:, kept] if sparse.issparse(duals) else np.asarray(duals)[:, kept]
    if added:
        none = np.zeros((A.shape[0], added))
        A = sparse.hstack([A, none], format="csr") if sparse.issparse(A) else np.hstack([A, none])
    return {"dual_coef_init": A}


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
