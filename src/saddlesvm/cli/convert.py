"""``saddlesvm convert``, and ``saddlesvm info`` for stores."""

from __future__ import annotations

import argparse
import os
import time
from typing import Any

from saddlesvm.cli import INTERRUPTED, OK
from saddlesvm.cli.console import print_error
from saddlesvm.cli.display import Facts, progress_bar, show
from saddlesvm.cli.tabular import needs_encoder, opened, refuse
from saddlesvm.data import DataError, Store
from saddlesvm.data import convert as convert_files
from saddlesvm.data.frame_files import taken_label
from saddlesvm.data.missing_values import NOTE
from saddlesvm.estimators.table_files import ENCODER, as_store, kinds_of
from saddlesvm.rows.memory_plan import memory_bytes
from saddlesvm.rows.small_types import type_name

CLASSES_SHOWN = 1_000


def convert(options: argparse.Namespace) -> int:
    """``saddlesvm convert``: data files into one store, in a single pass."""
    began = time.perf_counter()
    try:
        with progress_bar(f"converting to {options.store}", options.json) as advance:
            store = converted_table(options, advance) or convert_files(
                options.data,
                options.store,
                label=options.label,
                header=options.header,
                n_features=options.n_features,
                dtype=options.dtype,
                scale=options.scale,
                zero_based=options.index_base,
                memory=memory_bytes(options.memory),
                overwrite=options.overwrite,
                missing=options.missing,
                drop_columns=options.drop_columns,
                advance=advance,
            )
    except KeyboardInterrupt:
        print_error("saddlesvm: interrupted; nothing was written")
        return INTERRUPTED
    spent = time.perf_counter() - began
    read = sum(source["bytes"] for source in store.header["sources"])
    done = {"seconds converting": spent, "megabytes a second": read / 1e6 / spent}
    show(store_facts(store, options.store) | {"done": done}, options.json)
    return OK


def converted_table(options: argparse.Namespace, advance: Any) -> Store | None:
    """The store of a table with columns of words, encoded; None for other data.

    Raises
    ------
    DataError
        Several such files, which would each have an encoding of their own.
    """
    if not any(needs_encoder(options, source) for source in options.data):
        return None
    if len(options.data) > 1:
        raise DataError(f"{options.data[0]}: has columns of words; such files become a store one by one")
    refuse(options, options.data[0], ("n_features",))
    file = opened(options, options.data[0])
    label = taken_label(file, options.label)
    found = kinds_of(file, label, dict(options.columns or ()))
    return as_store(
        file, options.store, label, found,
        memory=memory_bytes(options.memory), overwrite=options.overwrite, dtype=options.dtype, advance=advance,
    )  # fmt: skip


def store_info(options: argparse.Namespace) -> int:
    """``saddlesvm info STORE``: show the header; only verification reads the whole store."""
    store = Store(options.source)
    facts = store_facts(store, options.source)
    if options.verify:
        began, done = time.perf_counter(), 0
        with progress_bar(f"verifying {options.source}", options.json) as advance:

            def note(n_bytes: int) -> None:
                nonlocal done
                done += n_bytes
                if advance is not None:
                    advance(done / store.n_bytes)

            store.verify(note)
        facts["verified"] = {
            "checksums": "all as the header says",
            "rows": "values finite, indices in place",
            "seconds verifying": time.perf_counter() - began,
        }
    show(facts, options.json)
    return OK


def store_facts(store: Store, path: str | os.PathLike[str]) -> Facts:
    """Facts of a store, from its header alone."""
    header, labels = store.header, store.header["labels"]
    norms = header["row_norms"]
    facts: dict[str, Any] = {
        "folder": os.fspath(path),
        "layout": store.layout,
        "rows": store.shape[0],
        "features": store.shape[1],
        "values stored": store.n_values,
        "non-zeros": header.get("n_nonzero"),
        "precision": type_name(store.dtype),
        "bytes": store.n_bytes,
        "norms of the rows": f"{norms['smallest']:.6g} to {norms['largest']:.6g}",
        "weights": "one a row" if store.sample_weight is not None else None,
    }
    if labels is not None and labels["classes"] is not None and len(labels["classes"]) <= CLASSES_SHOWN:
        facts["classes"] = {str(one): n for one, n in zip(labels["classes"], labels["counts"], strict=True)}
    elif labels is not None:
        facts["targets"] = f"{labels['smallest']:g} to {labels['largest']:g}" if labels["kind"] == "numbers" else "text"
    noted = header.get(NOTE)
    if noted is not None:
        what = "rows left out" if noted["how"] == "drop" else f"filled in with the {noted['how']}"
        facts[NOTE] = f"{noted['count']:,} {what}"
    if ENCODER in header:
        facts["columns"] = [f"{name}: {kind}" for name, kind in header[ENCODER]["state"]["columns"].items()]
    facts["written by"] = header.get("written by")
    facts["made from"] = [
        f"{one['path']} ({one['format']}, {one['rows']:,} rows, {one['bytes']:,} bytes)"
        for one in header.get("sources", ())
    ] or None
    return {"store": facts}
