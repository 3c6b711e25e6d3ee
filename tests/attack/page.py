"""The page "What was tried and what held", written from the records that the campaigns keep."""

from __future__ import annotations

import datetime
import json
import os
import platform
import subprocess
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numba
import numpy as np

from .hunt import Findings
from .seeds import PATTERNS
from .tally import Tally

RECORDS = Path(__file__).with_name("held.jsonl")
WHAT = {
    "model": "model files",
    "checkpoint": "checkpoints",
    "store": "stores",
    "liblinear": "LIBLINEAR models",
    "libsvm": "LIBSVM text",
    "csv": "CSV text",
    "compressed": "compressed text",
    "npz": ".npz matrices",
    "idx": "idx images",
    "parquet": "Parquet tables",
    "lying": "archives that lie about sizes",
    "certificates": "certificates",
    "fits": "fits judged from outside",
    "paths": "certified paths",
    "clocks": "time limits",
    "kills": "kills on the way",
    "conversions": "conversions killed",
    "workers": "workers killed",
    "resuming": "killed and resumed",
    "injected": "calls of the system that fail",
    "differential": "one problem in every way",
}
JUDGED = "the line that says that kernels are being compiled was taken for an error: the judge's mistake"
PROXIMITY = "a proximity that underflowed was divided by, in the joint machines' finish: it does not underflow since"
OVERWRITTEN = "the bound was that of a dual point that the solver had gone on from; that point is returned since"
# What records call a failure, by campaign and case: what it was, and what became of it.
MENDED = (
    {
        "model 1138": "text with a code point that does not exist crashed `saddlesvm info`: refused since, a kept case",
        "checkpoint 3550": "dual variables of the other byte order ended in a traceback: refused since, a kept case",
        "liblinear 4416": JUDGED,
        "npz 1745": JUDGED,
        "workers 43:27:": "a cancelled wait of Dask ended in an UnboundLocalError of Dask's: counted as a loss since",
    }
    | dict.fromkeys(
        [f"case 22:{number}" for number in (422, 779, 797, 4030, 7033, 10404)],
        "an objective that underflows was claimed to be zero, below what float64 can hold; its underflow counts since",
    )
    | {
        "case 22:1866": "a glance of a joint machine ended in a traceback, `math domain error`: it does not since",
        "case 22:5876": OVERWRITTEN,
        "case 22:8589": OVERWRITTEN,
        "case 40:69392": "the judge took the logarithm of 1 - 1e-265 in 120 digits: its mistake, mended since",
    }
    | dict.fromkeys([f"case 41:{number}" for number in (52, 13067, 13132, 20585)], PROXIMITY)
)


def record_of(found: Findings | Tally, seed: int, first: int, seconds: float) -> dict[str, Any]:
    """What is kept of a campaign: its counts, and where and when it was run."""
    name = found.kind if isinstance(found, Findings) else found.name
    return {
        "campaign": name,
        "seed": seed,
        "first": first,
        "cases": found.cases,
        "outcomes": dict(found.outcomes),
        "failures": [failure[:300] for failure in found.failures],
        "peak": getattr(found, "largest", 0),
        "slowest": getattr(found, "slowest", 0.0),
        "seconds": round(seconds),
        "commit": commit(),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": machine(),
    }


def machine() -> str:
    """The kind of machine, and the versions that matter."""
    kind = f"{platform.machine()}, {os.cpu_count()} processors, {platform.system()}"
    return f"{kind}, Python {platform.python_version()}, NumPy {np.__version__}, Numba {numba.__version__}"


def commit() -> str:
    """The commit that was run; empty outside of a clone."""
    asked = ["git", "-C", str(RECORDS.parent), "rev-parse", "--short", "HEAD"]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()


def keep(record: dict[str, Any], path: Path) -> None:
    """Append a record to a file."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")


def written(records: Iterable[dict[str, Any]]) -> str:
    """The page, in Markdown."""
    given = list(records)
    parts = [TOP, "## Damaged files", FILES, table_of_files(given)]
    parts += ["## Fits judged from outside", JUDGED_FITS, families(given, "fits")]
    parts += ["## Certificates", PROOFS, families(given, "certificates")]
    parts += [
        "## One problem in every way",
        DIFFERENTIAL,
        counted(given, "differential"),
        "## Kills",
        KILLS,
        counted(given, "kills", "conversions"),
        RESUMED,
        counted(given, "resuming"),
        WORKERS,
        counted(given, "workers"),
        "## Calls that fail",
        INJECTED,
        counted(given, "injected"),
        "## Time limits",
        CLOCKS,
        limits(given),
    ]
    parts += ["## What failed, and what became of it", failures(given), "## Where and when", places(given), END]
    return "\n\n".join(parts) + "\n"


def table_of_files(records: list[dict[str, Any]]) -> str:
    """A row for each kind of files."""
    lines = ["| kind | cases | refused | accepted | failed | slowest | most memory |", "|---|---|---|---|---|---|---|"]
    for name in WHAT:
        own = [one for one in records if one["campaign"] == name]
        if not own or name not in PATTERNS:
            continue
        total = sum((Counter(one["outcomes"]) for one in own), Counter())
        cases, slowest = sum(one["cases"] for one in own), max(one["slowest"] for one in own)
        peak = max(one["peak"] for one in own)
        failed = sum(len(one["failures"]) for one in own)
        lines.append(
            f"| {WHAT[name]} | {cases:,} | {total['refused']:,} | {total['accepted']:,} | {failed} | {slowest:.2f} s | "
            f"{peak / 2**20:.1f} MB |"
        )
    return "\n".join(lines)


def families(records: list[dict[str, Any]], campaign: str) -> str:
    """A row for each family of problems."""
    own = [one for one in records if one["campaign"] == campaign]
    if not own:
        return "Not run yet."
    total = sum((Counter(one["outcomes"]) for one in own), Counter())
    names, ends = (sorted({key.partition(" ")[side] for key in total}) for side in (0, 2))
    cases, failed = sum(one["cases"] for one in own), sum(len(one["failures"]) for one in own)
    lines = [
        f"{cases:,} fits, {failed} of them failed: a certificate was refuted, a fit raised, or the judge erred.",
        "",
        f"| family | {' | '.join(ends)} |",
        "|---" * (len(ends) + 1) + "|",
    ]
    for name in names:
        counts = [f"{total[' '.join((name, end))]:,}" for end in ends]
        lines.append(f"| {name} | {' | '.join(counts)} |")
    return "\n".join(lines)


def counted(records: list[dict[str, Any]], *campaigns: str) -> str:
    """A line for each outcome of some campaigns, with its number."""
    own = [one for one in records if one["campaign"] in campaigns]
    total = sum((Counter(one["outcomes"]) for one in own), Counter())
    return "\n".join(f"- {count:,} {name}" for name, count in sorted(total.items())) or "Not run yet."


def limits(records: list[dict[str, Any]]) -> str:
    """A line for each family that was held to a limit."""
    own = [key for one in records if one["campaign"] == "clocks" for key in one["outcomes"]]
    return "\n".join(f"- {key}" for key in own) or "Not run yet."


def failures(records: list[dict[str, Any]]) -> str:
    """Every failure, with what became of it."""
    found = [failure for one in records for failure in one["failures"]]
    lines = []
    for failure in found:
        known = next((text for key, text in MENDED.items() if failure.startswith(f"{key} ")), "not explained yet")
        lines.append(f"- {' '.join(failure.split()[:2])}: {known}.")
    return "\n".join(lines) or "Nothing."


def places(records: list[dict[str, Any]]) -> str:
    """When, with which seeds and on which machines the records were made."""
    lines = []
    for name in WHAT:
        own = [one for one in records if one["campaign"] == name]
        if own:
            lines.append(f"- {WHAT[name]}: {', '.join(dict.fromkeys(place_of(one) for one in own))}")
    return "\n".join([*lines, "", *sorted({f"Machine: {one['machine']}." for one in records})])


def place_of(record: dict[str, Any]) -> str:
    """The date, the cases and the commit of a record."""
    last = record["first"] + record["cases"] - 1
    at = f" at commit {record['commit']}" if record.get("commit") else ""
    return f"{record['date']} seed {record['seed']}, {record['first']:,} to {last:,}{at}"


TOP = """# What was tried and what held

This page is made by `python -m tests.attack --page`, from the records of the campaigns that were really
run. Each case has a seed and a number, and can be run again: `python -m tests.attack --only model
--seed 21 --first 1138 --count 1`."""
FILES = """Sound files are damaged by a method: bits, bytes, numbers, words, members of archives, headers and
values. A case holds where the file is refused with one line and exit code 2, or where it is read;
memory is to stay within 64 MB and twice the size of the file, and no case may take more than a minute."""
JUDGED_FITS = """Every registered estimator and option: classifications of two classes and many in every way,
columns of labels and of targets, the l1 norm and mixtures, nu, novelties, kernels, landmarks, stores; C and lambda
from 1e-8 to 1e8, weights over twelve powers of ten. Each problem is fitted by several solvers, to gaps loose and
out of reach, and stopped by epochs, seconds and callbacks. A judge that shares no code with the package reads public
attributes alone, and computes in 120 digits what is so: the objective of the model, the bound that the published dual
variables prove, and whether any certificate's bound is above the objective of any model found for the same problem.
`python -m tests.attack --only fits --seed S --count 20000` takes a new seed each time."""
PROOFS = """The campaign before that one judged results within the package.
Random problems near the limits of floating point: features over twelve powers of ten, identical rows,
weights over twelve powers of ten, C and lambda from 1e-8 to 1e8, every loss, layout, precision,
intercept and solver. A judge that shares no code with the package computes both objectives of what was
returned in 120 digits. A certificate is refuted where they contradict it, or where another model of the
same problem does."""
KILLS = """Runs are killed (SIGKILL) before one of their writes, renames or removals, and begun again, until they
come to their end. What they end with must be an undisturbed run's, to the last bit, and nothing may be
left beside it."""
RESUMED = """Fits of every machine, place and solver are ended at each of their certificates and after random
steps, and resumed from their checkpoints: the result is to be an undisturbed run's, to the last
bit."""
INJECTED = """Calls of the C library that write, read, sync, rename, open or map a file of a work
fail in turn, with each error that they may have (no space, input/output error, too many open files,
no memory, interrupted by a signal, or less than was asked for), and so does every allocation above
1 MB. The work is to end as undisturbed or with one line, to leave the old file or the whole new one and
nothing else, and to succeed when it is done once more. Models, checkpoints, stores, conversions and
caches are written, and files of every format are read. Of a work that makes many calls of a kind, 60
fail, evenly chosen; in the two runs of 2026-11-23 six and eight did."""
DIFFERENTIAL = """The same problem, on the same numbers, by every solver, over dense and sparse rows in float64 and
float32, with one and two threads, and block by block from stores, ended after 1, 5 or 200 epochs:
no certificate's bound is to be above the objective of any of the models."""
WORKERS = """One worker of three on a Dask cluster is killed at a random moment of a fit, and a new one takes its
place. The fit is to end certified, with weights as near to those of a fit in memory as both certificates say
they are; with other penalties and lambda, objectives."""
CLOCKS = """Seconds of the processor, the compilation of kernels left out. A limit holds where no more than a tenth
and 0.1 seconds are taken besides.
Other work on the machine takes processor time away within the limit, so that less than was asked for
may have been taken; a compilation that is under way at the limit is subtracted, which can leave 0."""
END = """What these campaigns do not try: kills of the scheduler and of the client of a cluster; faults of
the disk below the C library (a loss of power, a disk that says it has written what it has not);
failing calls in the reports, in Dask's processes and in the kernel cache; small allocations that
fail; fuzzing by coverage; mutants of the source; kernels with checked bounds, or as plain Python,
beyond single tests; machines with other processors; macOS and Windows."""


def write(page: Path, records: Path = RECORDS) -> None:
    """Write the page from the records in a file."""
    page.write_text(written(json.loads(line) for line in records.read_text("utf-8").splitlines()), "utf-8")
