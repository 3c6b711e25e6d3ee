"""Proofs of linear estimators about the exact optimum: its decisions, labels and weights."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from saddlesvm.answers.active_set import WORTH
from saddlesvm.answers.proof import Proof, gap_for, proof_near, proof_of
from saddlesvm.answers.steps import enough_for
from saddlesvm.data.door import checked_data as data_of, refuse_place
from saddlesvm.estimators.fitted import (
    begin_at,
    checked_rows,
    dual_row,
    fit_part,
    former_fit,
    label_rule,
    part_problem,
    rows_for_parts,
    weights_of,
)
from saddlesvm.fit.outcome import Outcome
from saddlesvm.problem.certificate import Certificate
from saddlesvm.problem.problem import Problem
from saddlesvm.rows.passes import Passes
from saddlesvm.rows.scores import dense_weights

__all__ = ["ProvesAnswers"]

CLOSE = 1e-12  # relative gap of the fit behind a proof: near what rounding leaves of a certificate
TOWARDS = (1e-6, 1e-9, CLOSE)  # relative gaps to which a model that is to be settled is trained, one after the other
AFRESH = {
    "warm_start": True, "gap": 0.0, "max_iter": None, "max_time": None, "keep": "best",
    "callbacks": None, "checkpoint": None, "memory": None, "verbose": 0, "solver": "auto", "probability": False,
    "random_state": 0,
}  # fmt: skip
TAKEN = (
    "coef_", "intercept_", "dual_coef_", "certificates_", "certificate_", "_fitted_C"
)  # fmt: skip


KEPT_HERE = ("_data", "_proof", "_proven_with")  # attributes that are neither saved nor pickled


class Data(NamedTuple):
    """The data of a fit: references, no copies. Fits whose rows are read from files keep none."""

    X: Any
    y: Any
    sample_weight: Any


def checked_data(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Data:
    """Data of the features that a fitted model knows; ValueError for others."""
    check_is_fitted(model)
    if isinstance(X, Passes):
        refuse_place(X, "what follows from a fit")
    design, y, sample_weight = data_of(X, y, sample_weight, model)
    return Data(design.X, y, sample_weight)


class ProvesAnswers:
    """A linear estimator that proves what the exact optimum of its training problem answers."""

    _data: Data | None
    _proof: Proof
    _proven_with: dict[str, Any]
    coef_: Any
    intercept_: Any

    def prove(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Prove bounds on the exact optimum of the training problem, from the training data.

        A model that was fitted in this process does this when bounds are first asked for. A loaded or unpickled model,
        or a model fitted to rows in files, has no training data: pass them here. The model keeps the proof (a matrix of
        at most d x d numbers for each sub-problem), not the data.

        Parameters
        ----------
        X, y, sample_weight
            The data that the model was fitted to.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            The data do not match the model.
        """
        self._proof = proof_of_data(self, checked_data(self, X, y, sample_weight))
        self._proven_with = self._asked_of_fits()
        return self

    def decision_bounds(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Bounds on the scores of the exact optimum, rounding counted.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)

        Returns
        -------
        lower, upper : ndarray of the shape of ``decision_function(X)``, or of ``predict(X)`` of a regression
            The score of the exact solution of the training problem lies between them. They are infinite where nothing
            is proven. With ``multi_class="ovo"`` there is one column for each pair.

        Raises
        ------
        ValueError
            Invalid rows, or a model without its training data: see :meth:`prove`.

        Notes
        -----
        The first call takes steps towards the exact optimum. If the gradient does not bound its distance well enough,
        the call also factors a matrix of at most 2,000 features. Later calls compute the scores of the rows, and with a
        factor one triangular solve for each row. Parameters that were changed since the fit count: the bounds are for
        the problem that a new fit would solve.

        Examples
        --------
        >>> from saddlesvm import LinearSVC
        >>> from saddlesvm.data import load_bundled
        >>> notes = load_bundled("banknote")
        >>> model = LinearSVC(random_state=0).fit(notes.X, notes.y)
        >>> lower, upper = model.decision_bounds(notes.X)
        >>> bool((upper - lower).max() < 1e-3)
        True
        """
        low, high = self._known().score_bounds(checked_rows(self, X))
        return (low[:, 0], high[:, 0]) if low.shape[1] == 1 else (low, high)

    def coef_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Bounds on the weights of the exact optimum, rounding counted.

        Returns
        -------
        lower, upper : ndarray of the shape of ``coef_``
            A weight is certainly positive where ``lower > 0``, negative where ``upper < 0``, and zero where both are.

        Raises
        ------
        ValueError
            A model without its training data: see :meth:`prove`.

        Examples
        --------
        >>> from saddlesvm import LinearSVC
        >>> from saddlesvm.data import load_bundled
        >>> notes = load_bundled("banknote")
        >>> model = LinearSVC(random_state=0).fit(notes.X, notes.y)
        >>> lower, upper = model.coef_bounds()
        >>> (upper < 0).tolist()
        [[True, True, True, True]]
        """
        bounds = self._known().weight_bounds()
        shape = np.shape(dense_weights(self.coef_) if hasattr(self.coef_, "toarray") else self.coef_)
        return bounds[0][:, :-1].reshape(shape), bounds[1][:, :-1].reshape(shape)

    def _forget_data(self) -> None:
        """Forget the data of an earlier fit, and what was proven of it."""
        for name in KEPT_HERE:
            self.__dict__.pop(name, None)
        self.__dict__.pop("_data_mark", None)

    def __getstate__(self) -> Any:
        state: Any = super().__getstate__()
        return {name: value for name, value in state.items() if name not in KEPT_HERE}

    def _known(self) -> Proof:
        """The proof, made where there is none yet."""
        check_is_fitted(self)
        asked: dict[str, Any] = self._asked_of_fits()
        if vars(self).get("_proof") is None or self._proven_with != asked:
            self._proof, self._proven_with = proof_of_data(self, self._training_data()), asked
        return self._proof

    def _asked_of_fits(self) -> dict[str, Any]:
        """The parameters: other ones pose another problem."""
        model: Any = self
        return dict(model.get_params(deep=False))

    def _training_data(self) -> Data:
        """The data of the fit.

        Raises
        ------
        ValueError
            The model has none.
        """
        data = vars(self).get("_data")
        if data is None:
            raise ValueError(
                "this model has no training data (it was loaded, unpickled, or fitted to files or on a cluster), and a "
                "proof needs them: call prove(X, y) with the data that it was fitted to"
            )
        return data


class ProvesLabels(ProvesAnswers):
    """A linear classifier that proves labels."""

    classes_: np.ndarray
    multilabel_: Any
    certificate_: Certificate
    outcome_: Outcome
    tol: float

    def is_proven(self, X: Any) -> np.ndarray:
        """Whether the predicted label of each row is proven to be the label of the exact optimum.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)

        Returns
        -------
        ndarray of bool, shape (m,), or (m, n_labels) of a model of several labels a row
            False where the optimum gives another label, or where the proof does not decide, such as for a row on the
            boundary.

        Raises
        ------
        ValueError
            Invalid rows, a model without its training data (see :meth:`prove`), or a model with ``probability=True``,
            whose labels depend on calibrated curves.

        Examples
        --------
        >>> from saddlesvm import LinearSVC
        >>> from saddlesvm.data import load_bundled
        >>> notes = load_bundled("banknote")
        >>> model = LinearSVC(random_state=0).fit(notes.X, notes.y)
        >>> float(model.is_proven(notes.X).mean())
        1.0
        """
        found = self._known()
        X = checked_rows(self, X)
        return self._agrees(found, X)

    def settle(self, X: Any) -> np.ndarray:
        """Continue the fit until the labels of these rows are proven, so that no smaller tolerance can change them.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
            The rows whose labels matter.

        Returns
        -------
        ndarray of bool, of the shape of :meth:`is_proven`
            Whether each label is proven to be the label of the exact optimum. The other rows are ties, up to rounding.

        Raises
        ------
        ValueError
            As :meth:`is_proven`.

        Notes
        -----
        The model keeps the weights that were reached, with their certificates.

        Examples
        --------
        >>> from saddlesvm import LinearSVC
        >>> from saddlesvm.data import load_bundled
        >>> notes = load_bundled("banknote")
        >>> model = LinearSVC(tol=0.1, random_state=0).fit(notes.X, notes.y)
        >>> bool(model.settle(notes.X).all())
        True
        """
        data, rows = self._training_data(), checked_rows(self, X)
        for tol in TOWARDS:
            model, _, found = closer(self, data, tol)
            vars(self).update({name: vars(model)[name] for name in TAKEN if name in vars(model)})
            self._proof, self._proven_with = found, self._asked_of_fits()
            if self.certificate_.relative_gap <= self.tol:
                self.outcome_ = Outcome.CERTIFIED
            proven = self._agrees(found, rows)
            if proven.all():
                break
        return proven

    def _agrees(self, found: Proof, X: Any) -> np.ndarray:
        """Whether the model's labels are proven to be the optimum's."""
        model: Any = self
        if model.probability:
            raise ValueError(
                "probability=True takes labels from calibrated curves, which have no proof: use "
                "decision_bounds(X), or a model without it"
            )
        number, proven = found.labels(X, self.classes_.size, label_rule(self))
        predicted = model.predict(X)
        if model.multilabel_:
            return proven & (number == (predicted.toarray() if hasattr(predicted, "toarray") else predicted))
        return np.asarray(proven & (self.classes_[number] == predicted))


class Closer(NamedTuple):
    """A model that went on from the weights of another, its problems, and its proof."""

    model: Any
    problems: list[Problem]
    proof: Proof


def proof_of_data(model: Any, data: Data) -> Proof:
    """The proof of a fitted model: by a few steps from its weights, or by those of a copy that is trained on."""
    own = _copy(model)
    ready = rows_for_parts(own, data.X, len(model.certificates_))
    enough, tol = enough_for(model.tol), CLOSE
    problems = None if ready is None else problems_of(own, data, ready)
    if problems is not None and len(problems) == len(model.certificates_):
        found = proof_near(problems, weights_of(model, problems[0].scale), enough)
        if found is not None:
            return found
        tol = min(max(tol, gap_for(problems, model.certificates_, enough)), max(model.tol, CLOSE))
    return closer(model, data, tol, max(enough, WORTH), ready).proof


def problems_of(model: Any, data: Data, ready: Any = None) -> list[Problem] | None:
    """The problems that a model, which knows its classes, poses on some data; None for rows that are not in memory.

    `ready` are the rows, prepared, where they are.
    """
    posed = model.training_problems(data.y, data.sample_weight, data.X.shape[0])
    ready = ready or rows_for_parts(model, data.X, len(posed.problems))
    return None if ready is None else [part_problem(model, sub, posed, ready) for sub in posed.problems]


def _copy(model: Any, tol: float = CLOSE) -> Any:
    """A model with the parameters of another, for a fit to the relative gap `tol`; it knows the classes already."""
    own = clone(model)
    fresh = {name: value for name, value in AFRESH.items() if name in own.get_params(deep=False)}
    C = {"C": model.C_} if hasattr(model, "C_") else {}
    own.set_params(**fresh, **C, tol=tol)
    learned = ("classes_", "indicator_", "multilabel_", "n_features_in_", "feature_names_in_")
    vars(own).update({name: vars(model)[name] for name in learned if name in vars(model)})
    return own


def closer(model: Any, data: Data, tol: float = CLOSE, enough: float = 0.0, ready: Any = None) -> Closer:
    """A copy of a fitted model that goes on to the relative gap `tol` from its weights; `enough` is that of
    :func:`~saddlesvm.answers.proof.proof_of`, and `ready` are the rows, prepared, where they are."""
    own = _copy(model, tol)
    begin_at(own, former_fit(model))
    posed = own.training_problems(data.y, data.sample_weight, data.X.shape[0])
    ready = ready or rows_for_parts(own, data.X, len(posed.problems))
    if ready is None:
        raise ValueError("a proof needs the training rows in memory: load them into arrays, and call prove(X, y)")
    fit_part(own, data.X, posed, ready)
    problems = [part_problem(own, sub, posed, ready) for sub in posed.problems]
    W = weights_of(own, problems[0].scale)
    known = hasattr(own, "dual_coef_") and own.dual_coef_.shape[0] == len(problems)
    duals = [dual_row(own, k) if known else None for k in range(len(problems))]
    return Closer(own, problems, proof_of(problems, W, own.certificates_, duals, enough))
