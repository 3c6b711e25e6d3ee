"""Attacks on the package: drawn problems before a judge in exact arithmetic, damaged files, injected faults and kills.

The suite runs a few examples of each, always the same ones. `.ci/attack` draws many new ones: it sets ATTACK_EXAMPLES,
a factor for the number of examples, and Hypothesis then takes a new seed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, Phase, settings

FACTOR = int(os.environ.get("ATTACK_EXAMPLES", "0"))


def examples(count: int) -> Callable[[Any], Any]:
    """Run so many examples, the same ones each time; or that times ATTACK_EXAMPLES, with a new seed."""
    return settings(
        max_examples=count * max(FACTOR, 1),
        derandomize=FACTOR == 0,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        # A case is a seed: a smaller seed is no simpler case.
        phases=(Phase.explicit, Phase.generate),
    )
