"""A command that was parsed, run: warnings, what is said while kernels are compiled, Ctrl-C."""

from __future__ import annotations

import argparse
import warnings

from saddlesvm.cli.console import print_error
from saddlesvm.fit.outcome import NotCertifiedWarning
from saddlesvm.runtime.compiling import telling

INTERRUPTED = 130


def run(options: argparse.Namespace) -> int:
    """Run the command; its exit code."""
    command = options.run.load()
    warnings.simplefilter("ignore", NotCertifiedWarning)
    warnings.filterwarnings("ignore", "X does not have valid feature names")  # check_features compares them already
    try:
        with telling(options.run.home != "saddlesvm.cli.warmup:run"):
            return int(command(options))
    except KeyboardInterrupt:
        print_error("saddlesvm: interrupted")
        return INTERRUPTED
