"""CSR matrices whose arrays are longer than their last row: what stands behind it is no part of the data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from saddlesvm import SVC, SVR, LinearSVC, LinearSVR, NuSVC, NuSVR, OneClassSVM, certify_kernel

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(40, 3)) * (RANDOM.random((40, 3)) < 0.5)
LABELS = np.where(X[:, 0] + 0.3 * RANDOM.normal(size=40) > 0.0, 1, -1)
MODELS = [
    SVC(),
    SVC(kernel="poly"),
    SVC(kernel="sigmoid", coef0=-0.5),
    NuSVC(nu=0.3),
    SVR(),
    NuSVR(),
    OneClassSVM(nu=0.3),
    LinearSVC(),
    LinearSVC(penalty="l1"),
    LinearSVC(loss="logistic"),
    LinearSVR(),
    LinearSVR(loss="epsilon_insensitive"),
]


def with_spare_end(rows: Any, spare: float) -> Any:
    """The same matrix, its arrays longer by places that no row points to."""
    longer = rows.copy()
    longer.data = np.append(rows.data, np.full(200, spare))
    longer.indices = np.append(rows.indices, np.zeros(200, rows.indices.dtype))
    return longer


@pytest.mark.filterwarnings("ignore::saddlesvm.NotCertifiedWarning")
@pytest.mark.parametrize("model", MODELS, ids=repr)
@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix])
@pytest.mark.parametrize("spare", [9.0, np.nan])
def test_a_fit_does_not_count_what_stands_behind_the_last_row(model: Any, kind: type, spare: float) -> None:
    rows = kind(X)
    longer = with_spare_end(rows, spare)
    y = X[:, 1] if hasattr(type(model), "score") and "SVR" in type(model).__name__ else LABELS
    plain = type(model)(**model.get_params()).fit(rows, y)
    found = type(model)(**model.get_params()).fit(longer, y)
    assert found.certificate_ == plain.certificate_
    scores = "decision_function" if hasattr(model, "decision_function") else "predict"
    np.testing.assert_array_equal(getattr(found, scores)(longer), getattr(plain, scores)(rows))
    if hasattr(found, "kernel_"):
        assert found.kernel_ == plain.kernel_


def test_certify_kernel_does_not_count_it() -> None:
    rows = sparse.csr_array(X)
    model = SVC().fit(rows, LABELS)
    assert certify_kernel(model, with_spare_end(rows, 9.0), LABELS) == certify_kernel(model, rows, LABELS)
