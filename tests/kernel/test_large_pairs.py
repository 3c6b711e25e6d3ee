"""Pairs of classes share a table of kernel rows, or have tables of their own: both are certified."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from saddlesvm import SVC, certify_kernel

X, y = make_blobs(1200, 5, centers=3, cluster_std=4.0, random_state=0)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("options", [{}, {"n_jobs": 2}, {"cache_size": 5}], ids=str)
def test_each_pair_is_certified_in_its_problem(weighted: bool, options: dict[str, int]) -> None:
    weights = np.random.default_rng(0).uniform(0.5, 2.0, y.size) if weighted else None
    model = SVC(tol=1e-4, **options).fit(X, y, sample_weight=weights)
    judged = certify_kernel(model, X, y, sample_weight=weights)
    assert model.certificate_.relative_gap <= 1e-4
    assert judged.primal == pytest.approx(model.certificate_.primal, rel=1e-9)
    assert judged.dual == pytest.approx(model.certificate_.dual, rel=1e-9)
