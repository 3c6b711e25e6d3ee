"""The files that a command names, looked at before anything heavy is loaded."""

from __future__ import annotations

import argparse
import os

from saddlesvm.data.errors import DataError
from saddlesvm.data.sources import check_there, refuse_special

__all__ = ["STANDARD_INPUT", "check_outputs", "check_sources", "is_pattern"]

STANDARD_INPUT = "-"


def is_pattern(data: str) -> bool:
    """Whether DATA is a pattern of several names rather than a name."""
    return any(sign in data for sign in "*?[") and not os.path.exists(data)


def check_sources(options: argparse.Namespace) -> None:
    """Raise DataError where a command reads data, or a model, that are not there.

    The options that name them are `reads` and `models` among those of the command. Standard input, and what the workers
    of a cluster read, are left to the command.
    """
    for path in named(options, "models"):
        if not os.path.exists(path):
            raise DataError(f"{path}: no such file")
        refuse_special(path)
    for source in named(options, "reads"):
        if source == STANDARD_INPUT or (getattr(options, "dask", None) and is_pattern(source)):
            continue
        if is_pattern(source):
            raise DataError(
                f"{source}: no such file; a pattern of stores is for --dask, and `saddlesvm convert` makes one store "
                "of many files or stores"
            )
        check_there(source)


def check_outputs(options: argparse.Namespace) -> None:
    """Raise DataError for a file that could not be written, or would be written twice; `writes` names the options."""
    paths = named(options, "writes")
    for path in paths:
        folder = os.path.dirname(os.path.realpath(path))
        if not os.path.isdir(folder):
            raise DataError(f"{path}: its folder does not exist")
        if os.path.isdir(path):
            raise DataError(f"{path}: is a folder; a file name is needed")
        refuse_special(path)
        if not os.access(folder, os.W_OK):
            raise DataError(f"{path}: cannot be written: permission denied in its folder")
    real = [os.path.realpath(path) for path in paths]
    for path, one in zip(paths, real, strict=True):
        if real.count(one) > 1:
            raise DataError(f"{path}: is given for two outputs; each needs a file of its own")


def named(options: argparse.Namespace, kind: str) -> list[str]:
    """The paths in those options that are of a kind: reads, models or writes."""
    given = [getattr(options, name) for name in getattr(options, kind, ())]
    return [path for one in given if one for path in ([one] if isinstance(one, str) else one)]
