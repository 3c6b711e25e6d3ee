"""``partial_fit``: a call learns a batch of rows, and returns a new fit with its running state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from saddlesvm.data.door import check_design
from saddlesvm.data.label_checks import check_labels, check_weights, find_codes
from saddlesvm.estimators.base import Labels, draw_seed
from saddlesvm.estimators.class_weights import weigh_classes
from saddlesvm.estimators.fitted import Fitted, give_features
from saddlesvm.estimators.stream import PegasosStream, check_stream
from saddlesvm.multiclass.sub_problems import one_vs_rest
from saddlesvm.problem.problem import resolve_C
from saddlesvm.runtime.data_types import RowsLike
from saddlesvm.solvers.register import make_solver

if TYPE_CHECKING:
    from saddlesvm.estimators.base import Estimator
    from saddlesvm.runtime.data_types import LabelsLike


def learn_batch(
    template: Estimator,
    former: Fitted | None,
    X: RowsLike,
    y: LabelsLike,
    classes: object,
    sample_weight: ArrayLike | None,
) -> Fitted:
    """Learn a batch of rows by a pass of Pegasos, from the point at which an earlier call ended.

    Parameters
    ----------
    template : LinearSVC
        The parameters, not fitted.
    former : Fitted, optional
        The last call, or a fit to all rows, whose classes count.
    X, y, classes, sample_weight
        As in :meth:`saddlesvm.LinearSVC.partial_fit`.
    """
    loss = template._check_options()
    is_first = former is None or former.stream is None
    labels = None if former is None else former.labels
    before = None if labels is None else labels.classes
    known = check_stream(classes, before, is_first, template.class_weight)
    if former is not None and not is_first:
        give_features(template, former.template)

    # The rows of this batch; their features must match those of earlier batches.
    design = check_design(X, template, reset=is_first)
    codes = find_codes(check_labels(y, design.shape[0]), known)
    own = check_weights(sample_weight, codes.size)
    weights, factors = weigh_classes(template.class_weight, known, codes, own, template.multi_class)
    design.norms()
    # The first batch fixes lambda: with C it is 1 / (C n), and n counts the rows of this batch.
    if former is None or former.stream is None:
        options = template._problem_options()
        _, lam = resolve_C(options.get("C"), options.get("lam"), design.shape[0])
        stream = PegasosStream(
            make_solver(template.solver),
            loss,
            template._intercept_kind(),
            template.intercept_scaling,
            lam,
            draw_seed(template.random_state),
            options.get("penalty"),
        )
    else:
        # Learn on a copy: the former fit stays as it is.
        stream = former.stream.copy()
    problems = one_vs_rest(codes, known, factors)
    coef, intercept, certificates = stream.learn(design, problems, weights)
    return Fitted(
        template=template,
        coef=coef,
        intercept=intercept,
        certificates=certificates,
        epochs=stream.passes,
        labels=Labels(known),
        stream=stream,
    )
