"""The commands' way of reading data: the options as the library takes them."""

from __future__ import annotations

import argparse
from typing import Any

from saddlesvm.cli.arguments import flag
from saddlesvm.cli.display import progress_bar
from saddlesvm.cli.options import OPTIONS, READING
from saddlesvm.data import DataError, Table
from saddlesvm.data.table import shorten
from saddlesvm.estimators.preparation import Preparation, read_training


def options_of(options: argparse.Namespace) -> dict[str, Any]:
    """The options of reading."""
    given = {name: getattr(options, name) for name in ("label", "header", "drop_columns", "columns", "scale")}
    given |= {"index_base": options.index_base, "missing": getattr(options, "missing", None)}
    return given | {"memory": getattr(options, "memory", None)}


def read_table(options: argparse.Namespace, source: str | list[str], **how: Any) -> Table:
    """Read a data file, or several stores, as the options say."""
    if isinstance(source, list):
        check_stores_asked(options, source)
    with progress_bar(f"reading {source}", options.json) as advance:
        return read_training(source, **(options_of(options) | how), advance=advance)


def read_prepared(
    options: argparse.Namespace,
    preparation: Preparation,
    source: str | list[str],
    task: Any = None,
    every_row: bool = False,
) -> Table:
    """Read other data of a model, prepared as its training data were."""
    if isinstance(source, list):
        check_stores_asked(options, source)
    with progress_bar(f"reading {source}", options.json) as advance:
        return preparation.read(source, **options_of(options), task=task, every_row=every_row, advance=advance)


def check_stores_asked(options: argparse.Namespace, stores: list[str], *further: str) -> None:
    """Raise DataError for options of reading files, and `further` ones, where the data are several stores."""
    for name in (*READING.split(), "missing", *further):
        if getattr(options, name) not in (OPTIONS[name].get("default", False), None):
            raise DataError(f"{flag(name)} is for files; {shorten(stores)} are stores")
