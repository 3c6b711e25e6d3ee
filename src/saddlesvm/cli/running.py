"""A command that was parsed, run: warnings, what is said while kernels are compiled, Ctrl-C."""

from __future__ import annotations

import argparse
import warnings
from typing import Any

from saddlesvm.cli import INTERRUPTED
from saddlesvm.cli.console import print_error
from saddlesvm.fit.outcome import NotCertifiedWarning
from saddlesvm.runtime.clock import reporting_compilation
from saddlesvm.runtime.shown import one_line


def run(options: argparse.Namespace) -> int:
    """Run the command; its exit code."""
    command = options.run.load()
    usual, warnings.formatwarning = warnings.formatwarning, as_line
    warnings.simplefilter("ignore", NotCertifiedWarning)
    warnings.filterwarnings("ignore", "X does not have valid feature names")  # check_features compares them already
    try:
        with reporting_compilation():
            return int(command(options))
    except KeyboardInterrupt:
        print_error("saddlesvm: interrupted")
        return INTERRUPTED
    finally:
        warnings.formatwarning = usual


def as_line(message: Warning | str, *place: Any, **more: Any) -> str:
    """A warning as a line for a person, without the place in the source that it comes from."""
    return f"saddlesvm: warning: {one_line(str(message))}\n"
