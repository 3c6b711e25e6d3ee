"""What a linear model can hand over about itself: a proof."""

from __future__ import annotations

from typing import Any

from saddlesvm.estimators.proofs import Proof, prove

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
            The data do not go with the model, or there are no proofs for its loss or ``multi_class``: there are some
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
