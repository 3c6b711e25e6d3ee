"""The short form of the campaign against LIBSVM: two sets, one strength, every machine and kernel."""

from __future__ import annotations

from benchmarks.claims.libsvm_agreement import MACHINES, OURS_TOL, cells


def test_objectives_and_decision_values_are_those_of_libsvm():
    found = list(cells(["iris", "friedman 1"], strengths=1))
    assert {cell.name.split(", ")[1] for cell in found} == set(MACHINES)
    assert len(found) >= 28
    assert [cell for cell in found if not cell.agrees] == []
    assert max(cell.gap for cell in found) <= OURS_TOL
