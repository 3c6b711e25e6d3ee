"""What a linear model can hand over about itself: a proof, a card; and how it learns and forgets.

A model that learns further rows, or forgets some, begins where the old model ended, and is certified for the rows
there are. A card holds the facts about a model that an auditor asks for, as Markdown or JSON.
"""

from __future__ import annotations

import json
import platform
from importlib.metadata import version
from typing import Any, Literal, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from saddlesvm import __version__
from saddlesvm.estimators import forgetting
from saddlesvm.estimators.proofs import Proof, prove
from saddlesvm.estimators.proven import checked_data
from saddlesvm.problem.loss import loss_name
from saddlesvm.problem.losses import make_loss

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
        card["data"] = {"rows": int(data.X.shape[0]), "sha256": forgetting.fingerprint(data)}
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
        gone = forgetting.chosen(rows, left.rows.size)
        lost = forgetting.part(left.data, left.rows[gone])
        what = {"what": "forgot", "rows": int(gone.sum()), "sha256": forgetting.fingerprint(lost)}
        change = forgetting.without(left, gone, model.tol)
        if change is not None and change.holds(model.tol):
            forgetting.take_change(self, change, what)
        else:
            data = forgetting.part(left.data, left.rows[~gone])
            forgetting.fit_on(self, data, ~gone, 0, what, None if change is None else change.start())
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
        what = {"what": "added", "rows": int(more.X.shape[0]), "sha256": forgetting.fingerprint(more)}
        change = forgetting.with_more(self, left, more)
        if change is not None and change.holds(model.tol):
            forgetting.take_change(self, change, what)
        else:
            data = forgetting.joined(left.part(), more)
            forgetting.fit_on(
                self, data, slice(None), more.X.shape[0], what, None if change is None else change.start()
            )
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

    def _left_of(self, X: Any, y: Any, sample_weight: Any = None) -> forgetting.Remaining:
        """The rows that the model has: those given, checked, or those of the last fit."""
        model: Any = self
        check_is_fitted(self)
        left: forgetting.Remaining | None = model.rows_left() if X is None else None
        if left is None:
            data = model.data_or_own(X, y, sample_weight)
            left = forgetting.remaining_of(self, data, X is None) or forgetting.Remaining(
                data, np.arange(data.X.shape[0]), []
            )
        return left
