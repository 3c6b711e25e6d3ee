"""Probabilities from scores: curves fitted to the scores of rows that the model was not trained on.

A sub-problem has a curve from its score to the probability of its later class, or of its class against the rest: a
sigmoid, or an isotonic curve. A temperature divides the scores of all classes alike, before a softmax, or those of all
pairs. The probabilities of pairs are coupled: those p of the classes are taken that minimise

    sum_i sum_{j != i} (r_ji p_i - r_ij p_j)^2,   sum_i p_i = 1,

where r_ij is the probability of class i in its pair with class j.

Source: Platt (1999), "Probabilistic outputs for support vector machines"; Lin, Lin and Weng (2007) for the targets;
Zadrozny and Elkan (2002) for isotonic curves; Wu, Lin and Weng (2004), "Probability estimates for multi-class
classification by pairwise coupling", second method; Guo, Pleiss, Sun and Weinberger (2017), "On calibration of modern
neural networks", for temperatures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logsumexp
from sklearn.base import clone
from sklearn.isotonic import IsotonicRegression

from saddlesvm.data.door import check_design, check_indicator, check_labels, check_weights
from saddlesvm.estimators.leave_one_out import estimated, narrowed
from saddlesvm.multiclass.splits import JOINT
from saddlesvm.multiclass.sub_problems import SubProblem, one_vs_rest
from saddlesvm.problem.joint_losses import softmax
from saddlesvm.problem.rounding import UNIT
from saddlesvm.runtime.allowed import among
from saddlesvm.runtime.threads import part_of_a_search

METHODS = ("sigmoid", "isotonic", "temperature")
PROBABILITY = among(f"True, False or one of {', '.join(METHODS)}", True, False, *METHODS)
FOLDS = 5  # of the rows, for scores of rows that a model was not trained on
NEAREST = 1e-7  # to 0 and 1, of the probability of a pair that is coupled; LIBSVM's
COUPLED_AT_ONCE = 2**20  # entries of the matrices of rows that are coupled at a time


class Column(NamedTuple):
    """A sub-problem's scores of rows that it was not trained on; whether each is of its later class; their weights."""

    scores: np.ndarray
    positive: np.ndarray
    weights: np.ndarray


def method_of(probability: bool | str) -> str:
    """The name of the method that an estimator's option `probability` asks for."""
    return "sigmoid" if probability is True else str(probability)


def columns_of(problems: Sequence[SubProblem], scores: np.ndarray, weights: np.ndarray | None) -> list[Column]:
    """The columns of scores, shape (n, problems), over the rows of positive weight that each sub-problem has."""
    columns = []
    for sub, column in zip(problems, scores.T, strict=True):
        own = sub.row_weights(weights)
        s = np.ones(column.size) if own is None else own
        chosen = np.flatnonzero(s > 0.0) if sub.members is None else sub.members[s[sub.members] > 0.0]
        columns.append(Column(column[chosen], sub.y[chosen] > 0, s[chosen]))
    return columns


def fitted_curves(columns: Sequence[Column], method: str) -> np.ndarray:
    """A curve from score to probability for each column, or a temperature for all.

    Parameters
    ----------
    columns : sequence of Column
    method : {"sigmoid", "isotonic", "temperature"}

    Returns
    -------
    ndarray of shape (k, 2), (k, 2, m) or (1,)
        Slope and offset of each sigmoid; the corners of each isotonic curve, scores, then probabilities; or the inverse
        temperature.
    """
    if method == "temperature":
        return _inverse_temperature(columns)
    if method == "sigmoid":
        return np.array([_sigmoid(*column) for column in columns])
    corners = []
    for z, y, weights in columns:
        curve = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip").fit(z, y.astype(np.float64), weights)
        corners.append((curve.X_thresholds_, curve.y_thresholds_))
    most = max(x.size for x, _ in corners)
    return np.array([[np.pad(side, (0, most - side.size), "edge") for side in pair] for pair in corners])


def fitted_softmax(scores: np.ndarray, codes: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The inverse temperature, shape (1,), of the softmax of the classes' scores.

    Parameters
    ----------
    scores : ndarray of shape (n, n_classes)
    codes : int ndarray of shape (n,)
        The class numbers of the rows.
    weights : ndarray of shape (n,)
    """
    K = scores.shape[1]
    own = np.bincount(codes, weights, K)[codes]
    targets = np.repeat((1.0 / (own + 2.0) / (K - 1))[:, None], K, axis=1)
    targets[np.arange(codes.size), codes] = (own + 1.0) / (own + 2.0)
    wanted = (targets * scores).sum(axis=1)

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        z = parameters[0] * scores
        expected = (softmax(z) * scores).sum(axis=1)
        return float(weights @ (logsumexp(z, axis=1) - parameters[0] * wanted)), np.array(
            [weights @ (expected - wanted)]
        )

    return _steepness(loss, scores, weights)


def probabilities(calibration: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """The probability that each column's curve gives to its scores, shape (n, k)."""
    if calibration.ndim == 1:
        return expit(scores * calibration)
    if calibration.ndim == 2:
        return expit(scores * calibration[:, 0] + calibration[:, 1])
    return np.column_stack([np.interp(z, *curve) for z, curve in zip(scores.T, calibration, strict=True)])


def class_probabilities(calibration: np.ndarray, scores: np.ndarray, pairs: bool) -> np.ndarray:
    """The probabilities of the classes, shape (n, n_classes), whose sums are 1.

    Parameters
    ----------
    calibration : ndarray
        Of :func:`fitted_curves`, or of :func:`fitted_softmax` for scores of classes.
    scores : ndarray of shape (n, 1), (n, n_classes) or (n, n_pairs)
    pairs : bool
        Whether they are those of pairs, positive for the later class.
    """
    if pairs and scores.shape[1] > 1:
        return coupled(probabilities(calibration, scores))
    if calibration.ndim == 1 and scores.shape[1] > 1:
        return softmax(calibration * scores)
    return of_classes(probabilities(calibration, scores))


def of_classes(positive: np.ndarray) -> np.ndarray:
    """Probabilities of the second of two classes, or of each against the rest, as those of all, whose sums are 1."""
    if positive.shape[1] == 1:
        return np.hstack([1.0 - positive, positive])
    sums = positive.sum(axis=1, keepdims=True)
    return np.where(sums > 0.0, positive / np.where(sums > 0.0, sums, 1.0), 1.0 / positive.shape[1])


def coupled(later: np.ndarray) -> np.ndarray:
    """The probabilities of the classes, shape (n, K), from those of pairs.

    With ``Q_ii = sum_s r_si^2`` and ``Q_ij = -r_ji r_ij`` the minimum of ``p' Q p`` is where ``Q p`` is constant: p is
    ``(Q + 1 1')^-1 1``, scaled. That matrix is positive definite, also where two classes make Q singular.

    Parameters
    ----------
    later : ndarray of shape (n, K (K - 1) / 2)
        The probability of the later class of each pair, in the order (0, 1), (0, 2), ..., (1, 2), ...
    """
    n, count = later.shape
    K = round(0.5 + np.sqrt(0.25 + 2.0 * count))
    first, second = np.array([*combinations(range(K), 2)]).T
    found, size = np.empty((n, K)), max(1, COUPLED_AT_ONCE // (K * K))
    for start in range(0, n, size):
        r = np.clip(later[start : start + size], NEAREST, 1.0 - NEAREST)
        Q = np.ones((len(r), K, K))
        Q[:, first, second] -= r * (1.0 - r)
        Q[:, second, first] -= r * (1.0 - r)
        for k in range(K):
            Q[:, k, k] += np.square(r[:, first == k]).sum(axis=1) + np.square(1.0 - r[:, second == k]).sum(axis=1)
        p = np.maximum(np.linalg.solve(Q, np.ones((len(r), K, 1)))[:, :, 0], 0.0)
        found[start : start + size] = p / p.sum(axis=1, keepdims=True)
    return found


def folds_of(codes: np.ndarray, weights: np.ndarray | None, seed: int) -> np.ndarray:
    """The fold of each row, drawn at random, each class dealt out alike.

    -1 for the only row of a class, without which a model would not know the class, and for rows of weight zero.
    """
    random, folds, begun = np.random.default_rng(seed), np.full(codes.size, -1), 0
    counted = np.ones(codes.size, dtype=bool) if weights is None else weights > 0.0
    for k in range(int(codes.max()) + 1):
        own = random.permutation(np.flatnonzero((codes == k) & counted))
        if own.size > 1:
            folds[own] = (begun + np.arange(own.size)) % FOLDS
            begun += own.size
    return folds


def held_out_scores(
    folds: np.ndarray,
    own: Callable[[np.ndarray], np.ndarray],
    of_others: Callable[[np.ndarray, np.ndarray], np.ndarray],
) -> np.ndarray:
    """Scores of each row by a model that was trained on the other folds, shape (n, k).

    Parameters
    ----------
    folds : ndarray of shape (n,)
        Of :func:`folds_of`.
    own : callable
        The scores of rows by the model of all rows, which those in no fold have.
    of_others : callable
        The scores of the rows in its second argument by a model trained on those in its first.
    """
    scores: np.ndarray | None = None
    for fold in range(-1, FOLDS):
        outside = np.flatnonzero(folds == fold)
        if outside.size:
            found = own(outside) if fold < 0 else of_others(np.flatnonzero(folds != fold), outside)
            found = found.reshape(outside.size, -1)
            scores = np.empty((folds.size, found.shape[1])) if scores is None else scores
            scores[outside] = found
    assert scores is not None
    return scores


def _targets(positive: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, float]:
    """Platt's targets, which keep a curve from fitting certainties, and the offset of no other knowledge."""
    ahead, behind = weights[positive].sum(), weights[~positive].sum()
    targets = np.where(positive, (ahead + 1.0) / (ahead + 2.0), 1.0 / (behind + 2.0))
    return targets, float(np.log((ahead + 1.0) / (behind + 1.0)))


def _size(scores: np.ndarray, weights: np.ndarray) -> float:
    """The size of scores: the root of their mean square."""
    square = np.square(scores) if scores.ndim == 1 else np.square(scores).mean(axis=1)
    return float(np.sqrt(np.average(square, weights=weights))) or 1.0


def _sigmoid(z: np.ndarray, positive: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Slope, not negative, and offset of Platt's sigmoid."""
    (target, prior), size = _targets(positive, weights), _size(z, weights)

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        m = parameters[0] * z / size + parameters[1]
        p = expit(m)
        value = float(weights @ (np.logaddexp(0.0, m) - target * m))
        pull = weights * (p - target)
        return value, np.array([pull @ z / size, pull.sum()])

    found = minimize(loss, [1.0, prior], jac=True, method="L-BFGS-B", bounds=[(0.0, None), (None, None)])
    return np.array([found.x[0] / size, found.x[1]])


def _inverse_temperature(columns: Sequence[Column]) -> np.ndarray:
    """The slope, shape (1,), that the sigmoids of all columns share, without offsets."""
    z, weights = (np.concatenate([getattr(one, name) for one in columns]) for name in ("scores", "weights"))
    target = np.concatenate([_targets(one.positive, one.weights)[0] for one in columns])

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        m = parameters[0] * z
        value = float(weights @ (np.logaddexp(0.0, m) - target * m))
        return value, np.array([(weights * (expit(m) - target)) @ z])

    return _steepness(loss, z, weights)


def _steepness(
    loss: Callable[[np.ndarray], tuple[float, np.ndarray]], scores: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """The factor of the scores, not negative, that minimises a convex loss; both are scaled to be about 1."""
    size, heavy = _size(scores, weights), float(weights.sum())

    def scaled(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = loss(parameters / size)
        return value / heavy, slope / (size * heavy)

    found = minimize(scaled, [1.0], jac=True, method="L-BFGS-B", bounds=[(0.0, None)], options={"gtol": 1e-9})
    return np.asarray(found.x / size)


def calibrated(model: Any, X: Any, y: Any, sample_weight: Any) -> np.ndarray:
    """The curves from scores to probabilities of a fitted classifier, see :func:`fitted_curves`.

    They are fitted to leave-one-out estimates of its rows' scores. Where there are none, or they cannot be trusted, to
    the scores of models that were trained on the other folds of five. Rows count with the weights of their classes.
    """
    posed = model.training_problems(y, sample_weight, check_design(X).shape[0])
    margins = None
    if model.multi_class == "ovr" and model._penalty().penalty.identity():
        found = estimated(model, X, y, sample_weight)
        margins = found.margins if found.trusted else None
    if margins is None:
        margins = _scores_of_folds(model, X, y, sample_weight)
    margins = margins.reshape(len(margins), -1)
    method, problems = method_of(model.probability), posed.problems
    if model.multilabel_:
        columns = columns_of(problems, margins, posed.weights)
        alone = [[one] for one in columns] if method == "temperature" else [columns]  # labels do not share one
        return np.concatenate([fitted_curves(some, method) for some in alone])
    codes = np.searchsorted(model.classes_, check_labels(y, len(margins)))
    if model.multi_class in JOINT:
        problems = one_vs_rest(codes, model.classes_)
    if method == "temperature" and model.multi_class != "ovo" and model.classes_.size > 2:
        weights = np.ones(codes.size) if posed.weights is None else posed.weights
        weights = weights * np.array([sub.factor for sub in problems])[codes]
        counted = weights > 0.0
        return fitted_softmax(margins[counted], codes[counted], weights[counted])
    return fitted_curves(columns_of(problems, margins, posed.weights), method)


def loss_bounds(model: Any, X: Any, y: Any, sample_weight: Any) -> tuple[float, float]:
    """Between what the mean ``-log p(label)`` of a calibrated classifier lies over its own rows, each left out.

    The curves, which stay, give a label a larger probability where the score of its class is larger, and those of the
    others are smaller.
    """
    found = narrowed(model, X, y, sample_weight)
    low, high = (one.reshape(len(one), -1) for one in (found.low, found.high))
    n, several = len(low), low.shape[1] > 1
    if model.multilabel_:
        own = check_indicator(y, n).toarray() > 0
    else:
        codes = np.searchsorted(model.classes_, check_labels(y, n))
        own = codes[:, None] == (np.arange(low.shape[1]) if several else 1)
    losses = []
    for scores in (np.where(own, high, low), np.where(own, low, high)):
        if model.multilabel_:
            p = probabilities(model.calibration_, scores)
            p = np.where(own, p, 1.0 - p)
        else:
            p = class_probabilities(model.calibration_, scores, pairs=False)
            p = p[own] if several else np.where(own, p[:, 1:], p[:, :1])
        with np.errstate(divide="ignore"):
            losses.append(-np.log(p.reshape(n, -1)).mean(axis=1))
    weights = np.ones(n) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    slip = 32.0 * UNIT  # of the few operations of a curve, and of the mean
    low_end, high_end = (float(np.average(one, weights=weights)) for one in losses)
    return low_end * (1.0 - slip) - slip, high_end * (1.0 + slip) + slip


def _scores_of_folds(model: Any, X: Any, y: Any, sample_weight: Any) -> np.ndarray:
    """Scores of each row by a model that was trained on the other folds."""
    design = check_design(X).X
    n = design.shape[0]
    weights = check_weights(sample_weight, n)
    if model.multilabel_:
        labels, codes = check_indicator(y, n).toarray(), np.zeros(n, dtype=np.intp)
    else:
        labels = check_labels(y, n)
        codes = np.searchsorted(model.classes_, labels)

    def of_others(train: np.ndarray, test: np.ndarray) -> np.ndarray:
        other = clone(model).set_params(
            C=model._fitted_C, lam=None, probability=False, checkpoint=None, warm_start=False,
            decision_function_shape="ovo",
        )  # fmt: skip
        with part_of_a_search():
            other.fit(design[train], labels[train], sample_weight=None if weights is None else weights[train])
        return np.asarray(other.decision_function(design[test]))

    return held_out_scores(folds_of(codes, weights, 0), lambda rows: model._scores(design[rows]), of_others)
