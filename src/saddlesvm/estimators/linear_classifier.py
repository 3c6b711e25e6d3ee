"""What a linear classifier does beside fitting all rows at once: it scores, predicts, and learns from later rows.

Of several labels a row, given as an indicator matrix, it learns one sub-problem a label. ``partial_fit`` goes on with
Pegasos over batches of rows that arrive one after the other; its state is kept between calls.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.exceptions import NotFittedError

from saddlesvm.data.door import Design, check_design, check_indicator, check_labels, check_weights, codes_among
from saddlesvm.estimators.base import Training, all_or_nothing, seed_of
from saddlesvm.estimators.calibration import class_probabilities, of_classes, probabilities
from saddlesvm.estimators.class_weights import weigh_classes
from saddlesvm.estimators.fitted import checked_rows, decide, indicate
from saddlesvm.estimators.linear_model import LinearModel
from saddlesvm.estimators.on_cluster import over_blocks
from saddlesvm.estimators.proven import TAKEN, TOWARDS, closer, prove_labels, training_data
from saddlesvm.estimators.scikit_learn import ClassifierMixin
from saddlesvm.fit.outcome import Outcome
from saddlesvm.multiclass import splits
from saddlesvm.multiclass.sub_problems import SubProblem, each_label, one_vs_rest, vote
from saddlesvm.problem.certificate import Certificate, Evaluation, evaluate
from saddlesvm.problem.intercepts import InterceptName, intercept_kind
from saddlesvm.problem.joint_losses import softmax
from saddlesvm.problem.losses import Loss
from saddlesvm.problem.penalties import Penalty
from saddlesvm.problem.problem import Problem, resolve_C
from saddlesvm.runtime.available import available_if
from saddlesvm.solvers.base import Budget, check_penalty
from saddlesvm.solvers.pegasos import Pegasos, PegasosState
from saddlesvm.solvers.pegasos_on_few import FewFeatures, continued
from saddlesvm.solvers.register import make_solver


def check_stream(given: Any, known: np.ndarray | None, first: bool, class_weight: Any) -> np.ndarray:
    """The classes of a stream, ascending.

    Parameters
    ----------
    given : array-like or None
        The classes that this call names.
    known : ndarray or None
        The classes of earlier calls, or of an earlier fit.
    first : bool
        Whether this call begins the stream.

    Raises
    ------
    ValueError
        There are fewer than two classes, other ones than before, or class weights that need all labels at once.
    """
    if isinstance(class_weight, str):
        raise ValueError(
            f"class_weight={class_weight!r} needs all labels at once: for partial_fit, give a dict, such as one of "
            "sklearn.utils.class_weight.compute_class_weight('balanced', classes=classes, y=y) with a large sample of y"
        )
    classes = known if given is None else np.unique(given)
    if classes is None:
        raise ValueError("classes must be given in the first call of partial_fit")
    if not (first or known is None or np.array_equal(classes, known)):
        raise ValueError(f"classes are {known.tolist()} since the first call of partial_fit; got {classes.tolist()}")
    if classes.size < 2:
        raise ValueError(f"classes must hold at least two labels; got {classes.tolist()}")
    return classes


class PegasosStream:
    """The iterates of one or more two-class problems that see the same rows, a call at a time.

    Parameters
    ----------
    solver : Pegasos
    loss : Loss
    intercept : {"none", "regularized", "free"}
    scaling : float
        Value of the virtual constant feature.
    lam : float
        lambda, the same for all calls.
    seed : int
    penalty : Penalty, optional
        Half a square when left out.
    """

    def __init__(
        self,
        solver: Pegasos,
        loss: Loss,
        intercept: InterceptName,
        scaling: float,
        lam: float,
        seed: int,
        penalty: Penalty | None = None,
    ) -> None:
        self.solver, self.loss, self.intercept, self.penalty = solver, loss, intercept, penalty
        self.scaling, self.lam, self.seed = float(scaling), lam, seed
        self.states: list[PegasosState] = []
        self.passes = 0

    def learn(
        self, X: Design, problems: Sequence[SubProblem], weights: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray, list[Certificate]]:
        """One pass over the rows for each of the sub-problems: coefficients, intercepts and certificates."""
        design: Any = X.with_feature(self.scaling if intercept_kind(self.intercept).present else 0.0)
        few = FewFeatures.of(design, self.solver, self.penalty is None or self.penalty.identity())
        coefs, intercepts, certificates = [], [], []
        for k, sub in enumerate(problems):
            problem = sub.problem(
                few.X if few else design, self.loss,
                lam=self.lam, weights=weights, intercept=self.intercept, penalty=self.penalty,
            )  # fmt: skip
            check_penalty(problem, self.solver)
            solver = dataclasses.replace(self.solver, batch_size=min(self.solver.batch_size, problem.members.size))
            coef, evaluation = self._learnt(k, solver, problem, few)
            coefs.append(coef)
            intercepts.append(evaluation.intercept)
            certificates.append(evaluation.certificate)
        self.passes += 1
        return coefs[0][None] if len(coefs) == 1 else np.stack(coefs), np.array(intercepts), certificates

    def _learnt(
        self, k: int, solver: Pegasos, problem: Problem, few: FewFeatures | None
    ) -> tuple[np.ndarray, Evaluation]:
        """The weights of a sub-problem after a pass over its rows, and what they are worth on these rows."""
        fresh, known = solver.init(problem, self.seed + k + 7919 * self.passes), self.states[k : k + 1]
        whole = known[0] if known else few.whole(fresh) if few else fresh
        state = few.part(whole, fresh) if few else continued(whole, fresh)
        goal = state.rows_touched + problem.members.size
        while state.rows_touched < goal:
            state = solver.step(problem, state, Budget(goal - state.rows_touched))
        if few is None:
            self.states[k : k + 1] = [state]
            evaluation = evaluate(problem, solver.solution(problem, state))
            return evaluation.coef, evaluation
        model = few.taken_back(solver, whole, state)
        self.states[k : k + 1] = [model.state]
        return model.coef, evaluate(problem, few.point(solver, problem, state, model))


def _gives_probabilities(estimator: Any) -> bool:
    if estimator.probability or estimator.multi_class == "multinomial":
        return True
    if estimator.multi_class != "ovr":
        raise AttributeError(
            "predict_proba needs probability=True, or multi_class='ovr' or 'multinomial'; this model has "
            f"{estimator.multi_class!r}"
        )
    if not hasattr(estimator._made_loss(), "probability"):
        raise AttributeError(
            "predict_proba needs probability=True, or a loss with probabilities, loss='logistic'; "
            f"this model has loss={estimator.loss!r}"
        )
    return True


def _is_pegasos(estimator: Any) -> bool:
    if estimator.multi_class != "ovr":
        raise AttributeError(f"partial_fit needs multi_class='ovr'; got {estimator.multi_class!r}")
    if estimator.penalty == "l1":
        raise AttributeError("partial_fit needs penalty='l2' or 'elasticnet'; got 'l1'")
    if not isinstance(make_solver(estimator.solver), Pegasos):
        raise AttributeError(f"partial_fit needs an online solver, solver='pegasos'; got {estimator.solver!r}")
    return True


class LinearClassifier(ClassifierMixin, LinearModel):
    """The base class of LinearSVC.

    Attributes
    ----------
    indicator_ : {"dense", "sparse"}
        The kind of indicator matrix that it was fitted to, and that it predicts; absent where the labels had one
        column.
    """

    indicator_: str

    loss: Any
    probability: Any
    classes_: np.ndarray
    coef_: np.ndarray
    intercept_: np.ndarray
    calibration_: np.ndarray

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = self.multi_class == "ovr"
        return tags

    @property
    def multilabel_(self) -> bool:
        """Whether the model was fitted to an indicator matrix."""
        return "indicator_" in vars(self)

    def _labels_posed(self, y: Any, sample_weight: Any, n: int) -> Training:
        """The sub-problems of an indicator matrix.

        Raises
        ------
        ValueError
            No indicator matrix, options that need labels of one column, or a label without an optimum.
        """
        if self.multi_class != "ovr":
            raise ValueError(f"an indicator matrix y needs multi_class='ovr'; got {self.multi_class!r}")
        if (given := self.class_weight) is not None:
            raise ValueError(
                f"class_weight={given!r} needs a y of shape (n,); for an indicator matrix use "
                f"sklearn.multiclass.OneVsRestClassifier(LinearSVC(class_weight={given!r}))"
            )
        indicator = check_indicator(y, n)
        weights = check_weights(sample_weight, n)
        if intercept_kind(self._intercept_kind()).constrained:
            counted = np.ones(n) if weights is None else (weights > 0).astype(np.float64)
            present = counted @ indicator
            alike = np.flatnonzero((present == 0) | (present == counted.sum()))
            if alike.size:
                value = int(present[alike[0]] > 0)
                raise ValueError(
                    f"column {alike[0]} of y is {value} everywhere, and a free intercept then has no unique optimum: "
                    "leave the column out, or use intercept='regularized'"
                )
        return Training(each_label(indicator), self._made_loss(), weights)

    def _learn_labels(self, y: Any) -> None:
        """Note what an indicator matrix says of the labels: their number, and how to predict them."""
        self.classes_ = np.arange(y.shape[1] if hasattr(y, "shape") else len(y[0]))
        self.indicator_ = "sparse" if sparse.issparse(y) else "dense"

    @available_if(_is_pegasos)
    @all_or_nothing
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn a batch of rows by one pass of Pegasos.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like of shape (n,)
        classes : array-like, optional
            All labels of the stream, at least two. The first call needs them. A call after :meth:`fit` counts as a
            first call.
        sample_weight : array-like of shape (n,), optional

        Raises
        ------
        ValueError
            Invalid data or options, ``class_weight="balanced"``, or other classes than in the first call.

        Notes
        -----
        The first call fixes lambda: `lam`, or ``1 / (C n)`` with the n of this call. ``certificate_`` is for the rows
        of the last call only.
        """
        loss = self._check_options()
        first = not hasattr(self, "_stream")
        self._forget_data()
        known = check_stream(classes, getattr(self, "classes_", None), first, self.class_weight)
        if first:
            self._forget()
            self.classes_ = known
        design = check_design(X, self, reset=first)
        codes = codes_among(check_labels(y, design.shape[0]), known)
        own = check_weights(sample_weight, codes.size)
        weights, factors = weigh_classes(self.class_weight, known, codes, own, self.multi_class)
        design.norms()
        if first:
            posed = self._posed()
            _, lam = resolve_C(posed.get("C"), posed.get("lam"), design.shape[0])
            self._stream = PegasosStream(
                make_solver(self.solver), loss, self._intercept_kind(), self.intercept_scaling, lam,
                seed_of(self.random_state), posed.get("penalty"),
            )  # fmt: skip
        problems = one_vs_rest(codes, known, factors)
        self.coef_, self.intercept_, self.certificates_ = self._stream.learn(design, problems, weights)
        self.certificate_ = Certificate.total(self.certificates_)
        self.n_iter_ = self._stream.passes
        return self

    @over_blocks
    def decision_function(self, X: Any) -> np.ndarray:
        """Signed scores, shape (n,) for two classes (positive: ``classes_[1]``), (n, n_classes) for more, or labels.

        With ``multi_class="ovo"`` they are the votes of the pairs for each class, ties broken by sums of scores.
        """
        scores = self._scores(X)
        if scores.shape[1] == 1:
            return scores[:, 0]
        return vote(scores, self.classes_.size) if self.multi_class == "ovo" else scores

    @over_blocks
    def predict(self, X: Any) -> np.ndarray:
        """The most likely class of each row, shape (n,); an indicator matrix where one was fitted, of its kind.

        With `probability` the class with the largest probability, or the labels with a probability above a half.
        """
        if not self._is_calibrated():
            return decide(self, self._scores(X))
        found = self.predict_proba(X)
        if self.multilabel_:
            return indicate(found - 0.5, self.indicator_)
        return self.classes_[found.argmax(axis=1)]

    def _is_calibrated(self) -> bool:
        """Whether curves give the probabilities; after :meth:`partial_fit` there are none."""
        return bool(self.probability) and hasattr(self, "calibration_")

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
        return prove_labels(self, found, checked_rows(self, X))

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
        data = training_data(self)
        rows = checked_rows(self, X)
        for tol in TOWARDS:
            near = closer(self, data, tol)
            for name in TAKEN:
                if name in vars(near.model):
                    setattr(self, name, getattr(near.model, name))
            self._proof = near.proof
            self._proven_with = self.get_params(deep=False)
            if self.certificate_.relative_gap <= self.tol:
                self.outcome_ = Outcome.CERTIFIED
            proven = prove_labels(self, near.proof, rows)
            if proven.all():
                break
        return proven

    @available_if(_gives_probabilities)
    @over_blocks
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes, shape (n, n_classes); for the logistic loss, or with `probability`.

        With ``multi_class="multinomial"`` they are the softmax of the scores. With more than two classes the
        one-against-rest probabilities are scaled to sum to 1, as in scikit-learn, and those of pairs are coupled (Wu,
        Lin and Weng, 2004). Probabilities of the labels of an indicator matrix are not scaled, because a row may have
        several labels.
        """
        scores = self._scores(X).astype(np.float64)
        if self.probability:
            if not hasattr(self, "calibration_"):
                raise NotFittedError("predict_proba needs a model that was fitted with probability=True: fit again")
            if self.multilabel_:
                return probabilities(self.calibration_, scores)
            return class_probabilities(self.calibration_, scores, self.multi_class == "ovo")
        if self.multi_class == "multinomial":
            return softmax(splits.each_class(scores.T).T)
        positive = self._made_loss().probability(scores)
        return positive if self.multilabel_ else of_classes(positive)

    @available_if(_gives_probabilities)
    @over_blocks
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of :meth:`predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))
