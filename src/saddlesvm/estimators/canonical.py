"""Canonical weights, and their digest: those of the exact optimum, correctly rounded, whatever the solver."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
from scipy import sparse

from saddlesvm.answers.active_set import Rounded, digest, polished, rounded
from saddlesvm.answers.proof import have_steps, proof_nearest
from saddlesvm.data.door import check_design
from saddlesvm.estimators.automatic_C import made_automatic
from saddlesvm.estimators.proven import Data, closer, problems_of, weights_of
from saddlesvm.fit.outcome import NotCertifiedWarning
from saddlesvm.problem.certificate import Certificate, Point, evaluate
from saddlesvm.problem.crammer_singer import JointProblem
from saddlesvm.rows.scores import dense_weights
from saddlesvm.runtime.allowed import WHOLE, Allowed, check

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
    if model.probability:
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
        known = proof_nearest(problems, weights_of(model, problems[0].scale))
    else:
        own, problems, known = closer(model, data)
    if isinstance(problems[0], JointProblem):
        raise ValueError(f"canonical is for multi_class 'ovr' and 'ovo'; got {model.multi_class!r}")
    found = rounded(*known.weight_bounds(), model.canonical)
    if found.ambiguous:
        W = weights_of(own, problems[0].scale) if own is not model else [part.center for part in known.parts]
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
    return Data(check_design(here[0]).X, *here[1:])
