"""Documents about a linear model, a proof and a card; and training on, and forgetting of, single rows."""

from __future__ import annotations

from typing import Any, Literal, Self

from sklearn.utils.validation import check_is_fitted

from saddlesvm.data import inputs
from saddlesvm.estimators.card import card_of, markdown
from saddlesvm.estimators.changing import chosen, fingerprint, fit_on, joined, part
from saddlesvm.estimators.proofs import Proof, prove
from saddlesvm.estimators.proven import Data

__all__ = ["Accountable"]


class Accountable:
    """A linear estimator that accounts for its model."""

    def proof(self, X: Any, y: Any = None, sample_weight: Any = None, *, read: dict[str, Any] | None = None) -> Proof:
        """A proof that the model is near its optimum, to write as JSON, for everybody to check without this package.

        It holds the problem, the weights, the multipliers that the weights do not determine, a hash of the data, and
        the claims: what the objective is at most, and what that of every model is at least. The claims are computed in
        fractions, by :mod:`saddlesvm.checker`. That file needs Python alone: ``python checker.py proof.json DATA``.

        Parameters
        ----------
        X : array-like, sparse matrix or Store of shape (n, d)
            The training rows.
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional
        read : dict, optional
            How the checker reads the file of the data where it is not to guess: `label` (the number of the column, from
            0), `drop` (numbers of other columns), `header` (whether there is one), `zero_based` (the indices).

        Returns
        -------
        dict

        Raises
        ------
        ValueError
            The data do not fit the model, or there are no proofs for its loss or ``multi_class``: there are some
            for every loss of the package, with "ovr", "ovo" and "multinomial".

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
        """Make the model one of the training rows without some of them, certified: erasure that can be checked.

        The fit begins where the model stands. With `canonical` its weights are those of a fit that never saw the rows,
        byte for byte, and ``digest_`` says so. ``log_`` gets an entry with the hash of the rows.

        Parameters
        ----------
        rows : array-like of int, or mask of shape (n,)
            The rows to forget.
        X, y, sample_weight : optional
            The data that the model was fitted to, as in :meth:`fit`; a store's rows come into memory. By default those
            of the last fit, where that was in this process.

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
        data = self._data_of(X, y, sample_weight)
        gone = chosen(rows, data.X.shape[0])
        what = {"what": "forgot", "rows": int(gone.sum()), "sha256": fingerprint(part(data, gone))}
        fit_on(self, part(data, ~gone), ~gone, 0, what)
        return self

    def update(self, X: Any, y: Any, sample_weight: Any = None, *, former: tuple[Any, ...] | None = None) -> Self:
        """Make the model one of its training rows and these further ones, certified; see :meth:`forget`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
        y : array-like of shape (m,)
        sample_weight : array-like of shape (m,), optional
        former : tuple of X, y and, optionally, sample_weight
            The data that the model was fitted to; by default those of the last fit, where that was in this process.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            Bad data, or no former ones.

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
        given: Any = former or (None, None)
        data = self._data_of(*given)
        X, y, sample_weight = inputs.parts_of(X, y, sample_weight)
        more = Data(inputs.check_design(self, X, reset=False), y, sample_weight)
        what = {"what": "added", "rows": int(more.X.shape[0]), "sha256": fingerprint(more)}
        fit_on(self, joined(data, more), slice(None), more.X.shape[0], what)
        return self

    def card(self, X: Any = None, y: Any = None, *, format: Literal["markdown", "json"] = "markdown") -> str:
        """The facts that an auditor asks for: problem, certificate, digest, hash of the data, classes, versions.

        Parameters
        ----------
        X, y : optional
            Rows to measure the accuracy on. For a classifier with its training data, an interval is given with
            it: the accuracy of the exact optimum lies there, proven.
        format : {"markdown", "json"}, default="markdown"

        Returns
        -------
        str

        Raises
        ------
        ValueError
            The format is another one, or the rows do not fit the model.

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

    def _data_of(self, X: Any, y: Any, sample_weight: Any = None) -> Data:
        """The training data: those given, checked, or those of the last fit."""
        check_is_fitted(self)
        if X is None:
            known: Data = self.training_data()  # type: ignore[attr-defined]
            return known
        X, y, sample_weight = inputs.parts_of(X, y, sample_weight)
        return Data(inputs.check_design(self, X, reset=False), y, sample_weight)
