"""Packages that import what they offer when it is used."""

from __future__ import annotations

import saddlesvm


def test_dir_lists_what_a_package_offers_and_nothing_else() -> None:
    offered = {name for name in dir(saddlesvm) if name[:2] != "__"}
    assert offered >= set(saddlesvm.__all__)
    for name in offered - set(saddlesvm.__all__):
        assert getattr(saddlesvm, name).__name__ == f"saddlesvm.{name}"
