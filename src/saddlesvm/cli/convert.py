"""``saddlesvm convert``: write data files of any size into one store."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import click

from saddlesvm.cli import INTERRUPTED, OK
from saddlesvm.cli.command import declare
from saddlesvm.cli.console import print_error
from saddlesvm.cli.options import JSON, READING_OPTIONS, take_reading
from saddlesvm.cli.values import DATA
from saddlesvm.data.errors import DataError


def check_sources(
    ctx: click.Context, param: click.Parameter, names: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the names of the data; raise an error if there are none."""
    if not names and not ctx.resilient_parsing:
        raise click.UsageError("give the data first, then the name of the store to write")
    return names


@declare(
    "saddlesvm convert day-1.svm.bz2 day-2.svm.bz2 days.store",
    "saddlesvm convert table.parquet table.store --label outcome --dtype float32",
)
@click.argument("data", type=DATA, metavar="DATA...", nargs=-1, callback=check_sources)
@click.argument("store", metavar="STORE")
@click.option(
    "--dtype",
    type=click.Choice(["float32", "float64"]),
    help="Type of the values; by default, that of the data.",
)
@click.option(
    "--memory",
    metavar="BYTES",
    default="256M",
    show_default=True,
    help="Memory for the rows during the conversion.",
)
@READING_OPTIONS
@JSON
def command(
    *,
    data: tuple[str, ...],
    store: str,
    dtype: str | None,
    memory: str,
    as_json: bool,
    **given: Any,
) -> int:
    """Write data files into one store, for fast and repeated training."""
    from saddlesvm.cli.info import describe_store
    from saddlesvm.cli.show import progress_bar, show
    from saddlesvm.data.conversion import convert_sources
    from saddlesvm.rows.memory_plan import memory_bytes

    reading = take_reading(given)
    for column, kind in reading.columns:
        raise DataError(
            f"--columns {column}={kind}: a store holds numbers, and NAME=drop leaves a column out; "
            "encode words in Python (saddlesvm.table), and write them with StoreWriter"
        )
    began = time.perf_counter()
    try:
        with progress_bar(f"converting to {store}", as_json) as advance:
            how = replace(reading, dtype=dtype)
            converted = convert_sources(data, store, how, memory_bytes(memory), advance)
    except KeyboardInterrupt:
        print_error("saddlesvm: interrupted; nothing was written")
        return INTERRUPTED
    seconds = time.perf_counter() - began
    # The speed counts the bytes of the files, compressed as they are.
    megabytes = sum(source["bytes"] for source in converted.header["sources"]) / 1e6
    speed: dict[str, Any] = {
        "seconds_converting": seconds,
        "megabytes_a_second": megabytes / seconds,
    }
    show({"store": describe_store(converted, store), "speed": speed}, as_json)
    return OK
