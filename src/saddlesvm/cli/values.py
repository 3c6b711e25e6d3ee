"""How options' values are read from text."""

from __future__ import annotations


def number_or_name(text: str) -> float | str:
    """`text` as a number if it is one, else as it is."""
    try:
        return float(text)
    except ValueError:
        return text
