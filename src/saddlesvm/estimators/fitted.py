"""A fitted linear model as a value, and functions of it: scores, labels, problems, starts.

A fit of any machine leaves :class:`FitFacts`, that of a linear model a :class:`Fitted`. An
estimator holds the value, and copies its public attributes from it. Whatever follows from a fit
(bounds, proofs, leave-one-out, paths, folds, files, predictions on a cluster) takes
the value and returns values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from saddlesvm.answers.labels import Rule
from saddlesvm.data.door import Design, check_design
from saddlesvm.estimators.base import Labels, Training, option_of
from saddlesvm.fit.outcome import FitResult, Outcome, Trace
from saddlesvm.multiclass import splits
from saddlesvm.multiclass.splits import FormerFit
from saddlesvm.multiclass.sub_problems import SEVERITY, SubProblem, likely_classes
from saddlesvm.problem.certificate import Certificate
from saddlesvm.problem.crammer_singer import JointProblem
from saddlesvm.problem.intercepts import intercept_kind
from saddlesvm.problem.problem import Problem, resolve_C
from saddlesvm.rows.array_libraries import copy_to_numpy
from saddlesvm.rows.scores import dense_weights
from saddlesvm.runtime.data_types import LabelsLike, RowsLike

if TYPE_CHECKING:
    from saddlesvm.answers.proof import Proof
    from saddlesvm.estimators.base import Estimator
    from saddlesvm.estimators.stream import PegasosStream
    from saddlesvm.runtime.data_types import Matrix

FEATURES = ("n_features_in_", "feature_names_in_")  # what a template knows of the features
LEFT_OUT = {"data": None, "proof": None}  # of pickles: they grow with the rows


class Data(NamedTuple):
    """The data of a fit: references, no copies."""

    X: Any
    y: Any
    sample_weight: ArrayLike | None


@dataclass(frozen=True, eq=False, kw_only=True)
class FitFacts:
    """What the fit of any machine, linear or with a kernel, leaves behind.

    Attributes
    ----------
    template : Estimator
        An estimator that is not fitted: it has the parameters of the fit, with the C that was
        chosen, and knows the features.
    intercept : ndarray of shape (vectors,)
    duals : ndarray or CSR array, or None
        In the C form, as ``dual_coef_`` shows them.
    C : float or None
        Of the problems; None if nobody knows it, as of a model that another program trained.
    certificates : list of Certificate
        A certificate for each sub-problem.
    outcome : Outcome or None
    trace : Trace
    epochs : float or ndarray, or None
        Of the longest sub-problem, or of each.
    seconds_solving, seconds_certifying : float
    seconds_compiling : float or None
    labels : Labels or None
        Of a classifier.
    chosen_C : float or None
        The C that was chosen in the fit.
    notes : dict or None
        Of the file that the model was loaded from.
    """

    template: Any
    intercept: np.ndarray
    duals: Any = None
    C: float | None = None
    certificates: Sequence[Certificate] = ()
    outcome: Outcome | None = None
    trace: Trace | None = None
    epochs: float | np.ndarray | None = None
    seconds_solving: float = 0.0
    seconds_certifying: float = 0.0
    seconds_compiling: float | None = None
    labels: Labels | None = None
    chosen_C: float | None = None
    notes: dict[str, Any] | None = None

    def __setstate__(self, state: Mapping[str, object]) -> None:
        vars(self).update(state)
        # skops reads an outcome as plain text.
        if self.outcome is not None:
            vars(self)["outcome"] = Outcome(self.outcome)

    @property
    def certificate(self) -> Certificate:
        """The certificate of all sub-problems together."""
        return Certificate.total(list(self.certificates))

    def attributes(self) -> dict[str, Any]:
        """Return the public attributes of an estimator that holds this fit."""
        found = known_features(self.template)
        found["intercept_"] = self.intercept
        if self.labels is not None:
            found["classes_"] = self.labels.classes
        if self.certificates:
            found["certificates_"] = list(self.certificates)
            found["certificate_"] = self.certificate
        if self.trace is not None:
            found["trace_"] = self.trace
            found["seconds_solving_"] = self.seconds_solving
            found["seconds_certifying_"] = self.seconds_certifying
        if self.epochs is not None:
            # A begun epoch counts as one.
            epochs = np.maximum(1, np.ceil(self.epochs))
            if np.ndim(epochs):
                found["n_iter_"] = epochs.astype(np.int32)
            else:
                found["n_iter_"] = int(epochs)
        optional = {
            "dual_coef_": self.duals,
            "seconds_compiling_": self.seconds_compiling,
            "outcome_": self.outcome,
            "C_": self.chosen_C,
            "notes_": self.notes,
        }
        for name, value in optional.items():
            if value is not None:
                found[name] = value
        return found


def gather_facts(results: Sequence[FitResult]) -> dict[str, Any]:
    """Return the facts of a fit that the results of its sub-problems have in common."""
    return {
        "certificates": [result.certificate for result in results],
        "outcome": max((result.outcome for result in results), key=SEVERITY.__getitem__),
        "trace": Trace(chain.from_iterable(result.trace for result in results)),
        "epochs": max(result.epochs for result in results),
        "seconds_solving": sum(result.seconds_solving for result in results),
        "seconds_certifying": sum(result.seconds_certifying for result in results),
    }


@dataclass(frozen=True, eq=False, kw_only=True)
class Fitted(FitFacts):
    """What a fit of a linear model leaves behind; its template is a LinearModel.

    Attributes
    ----------
    coef : ndarray or CSR array of shape (vectors, d)
    phases : list of dict
        For each sub-problem, seconds by solver or phase.
    single_target : bool
        True for a regression of a single target, whose public weights are a vector.
    reads_blocks : bool
        True if its rows were read block by block.
    data : Data or None
        The training data; None if they are in files or elsewhere, and after loading.
    proof : Proof or None
        What is proven of the exact optimum, once somebody asked.
    choice : Choice or None
        How ``C="auto"`` chose C.
    stream : PegasosStream or None
        The running state of ``partial_fit``.
    """

    coef: Any
    phases: Sequence[dict[str, float]] = ()
    single_target: bool = False
    reads_blocks: bool = False
    data: Data | None = None
    proof: Proof | None = None
    choice: Any = None
    stream: PegasosStream | None = None

    def __getstate__(self) -> dict[str, object]:
        return vars(self) | LEFT_OUT

    @property
    def multi_class(self) -> str:
        """The `multi_class` of the fit; "ovr" for a regression."""
        return str(option_of(self.template, "multi_class"))

    @property
    def several_labels(self) -> bool:
        """True if a row may have several labels."""
        return self.labels is not None and self.labels.indicator != ""

    def pose(self, y: LabelsLike, sample_weight: ArrayLike | None, n: int) -> Training:
        """Return the sub-problems of this model on n rows with these labels.

        Raises
        ------
        ValueError
            The labels are not the model's.
        """
        training: Training = self.template._pose(y, sample_weight, n, self.labels)
        return training

    def attributes(self) -> dict[str, Any]:
        """Return the public attributes of an estimator that holds this fit."""
        found = super().attributes()
        if self.labels is not None:
            found["multilabel_"] = self.several_labels
            if self.labels.indicator:
                found["indicator_"] = self.labels.indicator
        found["coef_"] = self.coef
        # As in scikit-learn, the weights for a single target are a vector.
        if self.single_target and not sparse.issparse(self.coef):
            found["coef_"] = self.coef[0]
        if self.trace is not None:
            found["phases_"] = add_phases(self.phases)
        if self.choice is not None:
            found["choice_"] = self.choice
            found["path_"] = self.choice.path
        return found


def known_features(template: Estimator) -> dict[str, object]:
    """Return what an estimator knows of its features."""
    return {name: vars(template)[name] for name in FEATURES if name in vars(template)}


def add_phases(phases: Sequence[dict[str, float]]) -> dict[str, float]:
    """Return the seconds of each phase, all sub-problems together."""
    total: dict[str, float] = {}
    for one in phases:
        for name, seconds in one.items():
            total[name] = total.get(name, 0.0) + seconds
    return total


def held_fit(model: Estimator) -> Any:
    """Return the value that an estimator holds; NotFittedError if it holds none."""
    held = getattr(model, "_fitted", None)
    if held is None:
        name = type(model).__name__
        raise NotFittedError(
            f"This {name} instance is not fitted yet: call 'fit' with training data first"
        )
    return held


def fitted_value(model: Estimator) -> Fitted:
    """Return the value that an estimator holds; weights that were assigned by hand count.

    Raises
    ------
    NotFittedError
        It holds none.
    """
    held: Fitted = held_fit(model)
    coef = np.atleast_2d(dense_weights(fetch_weights(model.coef_)))
    intercept = np.atleast_1d(fetch_weights(model.intercept_))
    if np.array_equal(coef, dense_weights(held.coef)) and np.array_equal(intercept, held.intercept):
        return held
    return replace(held, coef=coef, intercept=intercept, proof=None)


def fetch_weights(weights: object) -> Any:
    """Return weights in the memory of this machine."""
    if sparse.issparse(weights):
        return weights
    return copy_to_numpy(weights)


def copy_options(model: Estimator, **params: Any) -> Any:
    """Return an estimator that is not fitted: parameters and features of another, some changed."""
    return give_features(clone(model).set_params(**params), model)


def give_features(template: Estimator, known: object) -> Any:
    """Return a template that knows the features of another estimator, or the features in a dict."""
    features = known if isinstance(known, dict) else vars(known)
    vars(template).update({name: features[name] for name in FEATURES if name in features})
    return template


def make_model(fitted: Fitted, **params: object) -> Any:
    """Return an estimator that holds a fit; given parameters replace the fit's."""
    template = copy_options(fitted.template, **params)
    return clone(template)._hold(replace(fitted, template=template))


def check_rows(fitted: Fitted, X: RowsLike) -> Any:
    """Return the rows to predict as an array or CSR matrix; ValueError for bad rows."""
    return check_design(X, fitted.template, finite=True).X


def score_rows(fitted: Fitted, X: RowsLike) -> np.ndarray:
    """Return the score of each row in each sub-problem, shape (n, k)."""
    return check_design(X, fitted.template, repeats=True).scores(fitted.coef, fitted.intercept)


def label_rule(fitted: Fitted) -> Rule:
    """Return the rule by which the labels of a classifier follow from its scores."""
    if fitted.several_labels:
        return "each"
    if fitted.multi_class == "ovo":
        return "votes"
    return "largest"


def indicate(scores: np.ndarray, kind: str) -> np.ndarray | sparse.csr_array:
    """Return the indicator matrix ("dense" or "sparse") of the labels with positive scores."""
    indicator = (scores > 0).astype(np.int64)
    if kind == "sparse":
        return sparse.csr_array(indicator)
    return indicator


def scale_to_one(positive: np.ndarray) -> np.ndarray:
    """Return probabilities of all classes, with sums of 1, from the later class's, or each."""
    if positive.shape[1] == 1:
        return np.hstack([1.0 - positive, positive])
    sums = positive.sum(axis=1, keepdims=True)
    return np.where(sums > 0.0, positive / np.where(sums > 0.0, sums, 1.0), 1.0 / positive.shape[1])


def decide(scores: np.ndarray, labels: Labels | None, multi_class: str) -> np.ndarray:
    """Return labels, an indicator matrix or targets from scores of shape (n, problems)."""
    if labels is None:
        # A regression: the scores are the targets.
        if scores.shape[1] == 1:
            return scores[:, 0]
        return scores
    if labels.indicator:
        return indicate(scores, labels.indicator)
    return labels.classes[likely_classes(scores, labels.classes.size, multi_class == "ovo")]


def stack_weights(coef: Matrix, intercept: ArrayLike, value: float) -> np.ndarray:
    """Return weights (k, d + 1): an intercept is divided by the virtual feature's value."""
    dense = dense_weights(coef)
    own = np.ravel(intercept) / (value or 1.0)
    return np.column_stack([dense, np.broadcast_to(own, len(dense))])


def dual_row(duals: Any, k: int) -> np.ndarray:
    """Return row k of dual variables as an array of shape (n,)."""
    return np.ravel(duals[[k]].toarray() if sparse.issparse(duals) else duals[k])


def duals_for(fitted: Fitted, n: int) -> Any:
    """Return the dual variables of a model of n rows; None if it has none for them."""
    if fitted.duals is None or fitted.duals.shape[1] != n:
        return None
    return fitted.duals


def problem_C(template: Estimator, n: int) -> float:
    """Return the C of the problems that a fit to n rows solves.

    It is larger than the estimator's own if an l1 norm takes a share.
    """
    options = template._problem_options()
    return resolve_C(options.get("C"), options.get("lam"), n)[0]


def former_fit(fitted: Fitted | None) -> FormerFit | None:
    """Return the end of a fit, for another fit to start from; None if its C is unknown."""
    if fitted is None or fitted.C is None:
        return None
    return FormerFit(
        fitted.duals,
        dense_weights(fitted.coef),
        np.ravel(fitted.intercept),
        fitted.C,
        fitted.certificates[0].form == "lambda",
        list(fitted.phases),
    )


def pair_problems(
    template: Estimator,
    design: Design,
    training: Training,
    weights: tuple[Any, Any],
    strength: Mapping[str, object] | None = None,
) -> Iterator[tuple[SubProblem, Problem, np.ndarray]]:
    """Yield each of the sub-problems `training`, its problem over the rows, and the weights of it.

    `weights` are coefficients and intercepts. The virtual feature has the value that the user asked
    for; `strength` takes the place of the template's own, and of its penalty.
    """
    kind = template._intercept_kind()
    value = 0.0
    if intercept_kind(kind).present:
        value = float(template.intercept_scaling)
    X = design.with_feature(value)
    norms = design.norms() + value * value
    options = {"weights": training.weights, "intercept": kind, "norms": norms}
    options |= strength or template._problem_options()
    W = stack_weights(*weights, value)
    for sub in training.problems:
        problem = sub.problem(X, training.loss, **options)
        # A joint problem has the vectors of all classes, any other problem has its own.
        if isinstance(problem, JointProblem):
            yield sub, problem, splits.each_class(W)
        else:
            yield sub, problem, W[sub.index]
