"""A short run of the attack on proof files; ``benchmarks/claims/proofs.py`` has the long one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from attack.proofs import agreements, forgeries
from attack.tally import Tally


@pytest.mark.parametrize(("campaign", "count"), [(agreements, 40), (forgeries, 60)])
def test_proofs_agree_and_forgeries_are_refused(
    campaign: Callable[[Path, int, int, int], Tally], count: int, tmp_path: Path
) -> None:
    found = campaign(tmp_path, 7, 0, count)
    assert found.cases == count
    assert found.failures == []
