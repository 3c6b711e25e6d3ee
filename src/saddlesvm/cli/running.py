"""A command that was parsed, run: warnings, what is said while kernels are compiled, Ctrl-C; and the warm-up."""

from __future__ import annotations

import argparse
import sys
import warnings
from typing import Any

from saddlesvm.cli import INTERRUPTED, OK
from saddlesvm.cli.console import print_error
from saddlesvm.fit.outcome import NotCertifiedWarning
from saddlesvm.runtime.clock import reporting_compilation
from saddlesvm.runtime.lazy import Later
from saddlesvm.runtime.option_names import KERNEL_LOSSES, USUAL_LOSSES
from saddlesvm.runtime.shown import one_line


def run(options: argparse.Namespace) -> int:
    """Run the command; its exit code."""
    command = options.run.load()
    usual, warnings.formatwarning = warnings.formatwarning, as_line
    warnings.simplefilter("ignore", NotCertifiedWarning)
    warnings.filterwarnings("ignore", "X does not have valid feature names")  # check_features compares them already
    try:
        with reporting_compilation(options.run.home != "saddlesvm.cli.running:warm_up"):
            return int(command(options))
    except KeyboardInterrupt:
        print_error("saddlesvm: interrupted")
        return INTERRUPTED
    finally:
        warnings.formatwarning = usual


def as_line(message: Warning | str, *place: Any, **more: Any) -> str:
    """A warning as a line for a person, without the place in the source that it comes from."""
    return f"saddlesvm: warning: {one_line(str(message))}\n"


def warm_up(options: argparse.Namespace) -> int:
    """Compile ahead what first fits would otherwise wait for.

    Options
    -------
    intercept : default=regularized
    multi_class : text
        Of several classes.
    penalty : text
        Of the weights.
    kernel : text
        Of SVC, SVR.
    n_jobs : text
        2 or more: also what threads within a fit need.

    Examples
    --------
    saddlesvm warmup
    saddlesvm warmup --loss hinge,logistic --layout csr --dtype float32
    """

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
    spent = Later("saddlesvm.estimators.warmup:warmup")(**asked, watch=watch, **given)
    print(f"seconds compiling  {spent:.1f}")
    return OK
