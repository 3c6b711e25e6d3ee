"""``saddlesvm warmup``: compile ahead what first fits would otherwise wait for."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from saddlesvm.estimators.warmup import warmup
from saddlesvm.runtime.words import KERNEL_LOSSES, USUAL_LOSSES


def run(options: argparse.Namespace) -> int:
    """Compile, a line on standard error for each combination, and print what it took; the exit code."""

    def watch(name: str, seconds: float) -> None:
        print(f"{name}: {seconds:.1f} s", file=sys.stderr, flush=True)

    usual = KERNEL_LOSSES if options.kernel else USUAL_LOSSES[:1] if options.multi_class else USUAL_LOSSES
    asked = {name: getattr(options, name).split(",") for name in ("layout", "dtype")}
    asked["loss"] = options.loss.split(",") if options.loss else list(usual)
    given = {name: getattr(options, name) for name in ("multi_class", "penalty", "kernel", "n_jobs")}
    given = {name: one for name, one in given.items() if one is not None}
    if not options.kernel:
        free: dict[str, Any] = {"fit_intercept": False}
        given |= free if options.intercept == "none" else {"intercept": options.intercept}
    spent = warmup(**asked, watch=watch, **given)
    print(f"seconds compiling  {spent:.1f}")
    return 0
