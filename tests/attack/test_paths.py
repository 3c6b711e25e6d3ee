"""The short form of the attack on certified paths; ``python -m tests.attack --only paths`` has the long one."""

from __future__ import annotations

from .paths import paths


def test_no_fit_at_a_random_c_contradicts_a_path():
    found = paths(seed=1, first=0, count=4, values=10)
    assert not found.failures, str(found)
    assert found.cases == 4
