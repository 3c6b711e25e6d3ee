"""What became of the cases of a campaign."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Tally:
    """What became of the cases: their number, outcomes by family, and what was refuted."""

    name: str
    cases: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        told = ", ".join(f"{count} {name}" for name, count in sorted(self.outcomes.items()))
        return f"{self.name}: {self.cases} cases, {len(self.failures)} refuted ({told})"
