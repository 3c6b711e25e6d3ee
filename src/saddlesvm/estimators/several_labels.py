"""Classifiers that learn several labels a row, given as an indicator matrix: one sub-problem a label."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from saddlesvm.data import inputs
from saddlesvm.data.columns_of_labels import check_indicator
from saddlesvm.multiclass.sub_problems import SubProblem, each_label
from saddlesvm.problem.intercepts import intercept_kind


class SeveralLabels:
    """The part of a classifier that handles indicator matrices.

    Attributes
    ----------
    indicator_ : {"dense", "sparse"}
        The kind of indicator matrix that it was fitted to, and that it predicts; absent where the labels had one
        column.
    """

    indicator_: str
    classes_: Any
    multi_class: str
    class_weight: Any
    _intercept_kind: Callable[[], Any]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.classifier_tags.multi_label = self.multi_class == "ovr"
        return tags

    @property
    def multilabel_(self) -> bool:
        """Whether the model was fitted to an indicator matrix."""
        return "indicator_" in vars(self)

    def _labels_posed(
        self, y: Any, sample_weight: Any, n: int
    ) -> tuple[list[Callable[[], SubProblem]], np.ndarray | None]:
        """The makers of the sub-problems of an indicator matrix, and the row weights.

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
        weights = inputs.check_weights(sample_weight, n)
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
        return each_label(indicator), weights

    def _learn_labels(self, y: Any) -> None:
        """Note what an indicator matrix says of the labels: their number, and how to predict them."""
        self.classes_ = np.arange(y.shape[1] if hasattr(y, "shape") else len(y[0]))
        self.indicator_ = "sparse" if sparse.issparse(y) else "dense"

    def _indicated(self, scores: np.ndarray) -> Any:
        """The indicator matrix of the labels with positive scores, of the kind that was fitted, int64."""
        found = (scores > 0).astype(np.int64)
        return sparse.csr_array(found) if self.indicator_ == "sparse" else found
