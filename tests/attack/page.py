"""The page "What was tried and what held", written from the records that the campaigns keep."""

from __future__ import annotations

import datetime
import json
import os
import platform
import re
import subprocess
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numba
import numpy as np

from .excused import EXCUSED
from .hunt import Findings
from .seeds import PATTERNS
from .tally import Tally

RECORDS = Path(__file__).with_name("held.jsonl")
SOURCE = Path(__file__).resolve().parents[2] / "src" / "saddlesvm"
NEGATIVE = r"-[\d.]+ s taken"  # more was subtracted for a compilation than the fit took
WHAT = {
    "model": "model files",
    "checkpoint": "checkpoints",
    "store": "stores",
    "liblinear": "LIBLINEAR models",
    "libsvm model": "LIBSVM models",
    "proof": "proofs",
    "libsvm": "LIBSVM text",
    "csv": "CSV text",
    "compressed": "compressed text",
    "npz": ".npz matrices",
    "idx": "idx images",
    "parquet": "Parquet tables",
    "arrow": "Arrow tables",
    "npy": ".npy matrices",
    "jsonl": "JSON lines",
    "lying": "archives that lie about sizes",
    "certificates": "certificates",
    "fits": "fits judged from outside",
    "paths": "certified paths",
    "clocks": "time limits",
    "kills": "kills on the way",
    "conversions": "conversions killed",
    "workers": "workers killed",
    "clusters": "schedulers, clients and workers killed",
    "sharing": "processes at one path",
    "resuming": "killed and resumed",
    "fuzzing": "inputs chosen by coverage",
    "injected": "calls of the system that fail",
    "differential": "one problem in every way",
    "mutants": "mutants",
    "kernels": "kernels in other modes",
    "branches": "branches of plain Python",
    "machines": "other processors",
}
JUDGED = "the judge took the line about compilation for an error; the judge is mended"
PROXIMITY = "the finish of the joint machines divided by a proximal weight that underflowed; it no longer underflows"
OVERWRITTEN = "the bound belonged to a dual point that the solver had left; the fit now returns this point"
REPLACED = "another conversion replaced a store as it was opened; it is opened again now, and kept as a test"
DECIMALS = "test_a_decimal_is_rounded_as_python_rounds_it"
SLOPES = "test_the_slope_of_a_loss_is_the_larger_one_of_both_labels"
KEPT_SIZES = "the test changed a loss whose sizes were kept from an earlier test; the test is mended"
# What records call a failure, by campaign and case: what it was, and what became of it.
MENDED = (
    {
        "model 1138": "text with an invalid code point crashed `saddlesvm info`; it is now refused, and kept as a test",
        "checkpoint 3550": "dual variables of the other byte order raised an error; now refused, and kept as a test",
        "liblinear 4416": JUDGED,
        "liblinear 15": "the judge counted the memory of compiled code, which a first file loads; the judge is mended",
        "libsvm model 25": "as before, for a damaged model that looks like LIBSVM text; the judge is mended",
        "npz 1745": JUDGED,
        "fits 404:3544": "an objective of a model over landmarks underflowed; its certificate now counts underflow",
        f"kernels as plain Python, tests/data/test_libsvm_text.py::{DECIMALS}:": "hypothesis calls a test flaky whose "
        "time is over; it counts as stopped now",
        f"kernels as plain Python, tests/problem/test_rounding.py::{SLOPES}:": KEPT_SIZES,
        f"kernels as checked bounds, tests/problem/test_rounding.py::{SLOPES}:": KEPT_SIZES,
        "workers 43:27:": "a cancelled wait raised an UnboundLocalError in Dask; it now counts as a lost worker",
    }
    | dict.fromkeys(
        [f"case 22:{number}" for number in (422, 779, 797, 4030, 7033, 10404)],
        "an objective below the least float64 was reported as zero; rounding now includes underflow",
    )
    | {
        "case 22:1866": "a quick estimate of a joint machine raised `math domain error`; mended",
        "case 22:5876": OVERWRITTEN,
        "case 22:8589": OVERWRITTEN,
        "case 40:69392": "the judge took the logarithm of 1 - 1e-265 in 120 digits; the judge is mended",
    }
    | dict.fromkeys(["sharing 919:2", "sharing 919:5"], REPLACED)
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
    parts += [FUZZING, table_of_inputs(given)]
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
        CLUSTERS,
        counted(given, "clusters"),
        SHARING,
        counted(given, "sharing"),
        "## Calls that fail",
        INJECTED,
        counted(given, "injected"),
        "## Mutants",
        MUTANTS,
        mutants(given),
        "## Kernels without compilation, and with checked bounds",
        KERNELS,
        kernels(given),
        "## Branches of plain Python",
        BRANCHES,
        branches(given),
        "## Other processors",
        MACHINES,
        counted(given, "machines"),
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


def table_of_inputs(records: list[dict[str, Any]]) -> str:
    """A row for each kind of files that was fuzzed."""
    own = [one for one in records if one["campaign"] == "fuzzing"]
    if not own:
        return "Not run yet."
    lines = ["| kind | inputs | branches of sound files | of all inputs | failed |", "|---|---|---|---|---|"]
    for name in PATTERNS:
        found = [one for one in own if one["outcomes"].get(f"{name} inputs")]
        inputs = sum(one["outcomes"][f"{name} inputs"] for one in found)
        first, last = (
            max((one["outcomes"][f"{name} branches{end}"] for one in found), default=0)
            for end in (" of sound files", "")
        )
        failed = sum(f" {name}: " in failure for one in found for failure in one["failures"])
        lines += [f"| {WHAT[name]} | {inputs:,} | {first:,} | {last:,} | {failed} |"] if found else []
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
        f"{cases:,} fits; {failed} failures: a certificate was refuted, a fit raised an error, or the judge erred.",
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


def mutants(records: list[dict[str, Any]]) -> str:
    """A row for each file, of its last campaign and what became of its survivors since; and those that are left."""
    own = [one for one in records if one["campaign"] == "mutants"]
    drawn, again = (
        {key.split()[1]: one for one in own if one.get("again", False) == which for key in one["outcomes"]}
        for which in (False, True)
    )
    if not drawn:
        return "Not run yet."
    lines, left = [*HEAD_OF_MUTANTS], []
    for file, record in sorted(drawn.items()):
        if not (SOURCE / file if "/" in file else SOURCE / "problem" / file).exists():
            continue  # its text is in other files by now
        count = count_of(file, record)
        later = again[file] if file in again and own.index(again[file]) > own.index(record) else None
        since = Counter[str]() if later is None else count_of(file, later)
        survived = [failure for failure in (later or record)["failures"] if not excused(failure)]
        forgiven = len((later or record)["failures"]) - len(survived) + count["excused"] + since["excused"]
        cells = (
            f"{count.total() - count['not run']:,}",
            f"{count['killed'] + count['hung']:,}",
            f"{since['killed'] + since['hung']:,}" if later else "",
            f"{forgiven:,}",
            f"{len(survived):,}",
            ", ".join(dict.fromkeys(one["commit"] for one in (record, later) if one)),
        )
        lines.append(f"| {file} | {' | '.join(cells)} |")
        left += [f"- {file}: `{failure.partition(': ')[2]}`" for failure in survived]
    return "\n".join([*lines, "", *(["Left:", "", *left] if left else ["None is left."])])


HEAD_OF_MUTANTS = (
    "| file | mutants run | noticed | noticed later | excused | left | commits |",
    "|---|---|---|---|---|---|---|",
)


def excused(failure: str) -> bool:
    """Whether a mutant that survived has an excuse by now."""
    before, _, after = failure.partition(": ")[2].partition(" => ")
    return (failure.partition(".py:")[0], before, after) in EXCUSED


def count_of(file: str, record: dict[str, Any]) -> Counter[str]:
    """How many mutants of a file came to each outcome."""
    return Counter({key.removeprefix(f"of {file} "): number for key, number in record["outcomes"].items()})


def kernels(records: list[dict[str, Any]]) -> str:
    """A table of the last run of each mode, and for each a list of the kernels that it did not meet, by module."""
    modes = sorted({one["mode"]: one for one in records if one["campaign"] == "kernels"}.items())
    if not modes:
        return "Not run yet."
    names = sorted({name for _, last in modes for name in last["outcomes"]})
    lines = [f"| mode | minutes | {' | '.join(names)} | commit |", "|---" * (len(names) + 3) + "|"]
    for mode, last in modes:
        counts = " | ".join(f"{last['outcomes'].get(name, 0):,}" for name in names)
        lines.append(f"| {mode} | {last['seconds'] / 60.0:.0f} | {counts} | {last['commit']} |")
    for mode, last in modes:
        modules: dict[str, list[str]] = {}
        for name in last["not met"]:
            module, _, kernel = name.rpartition(".")
            modules.setdefault(module, []).append(f"`{kernel}`")
        lines += ["", f"Not met, {mode}:", ""]
        lines += [f"- {module}: {', '.join(kernels)}" for module, kernels in modules.items()] or ["- none"]
    return "\n".join(lines)


def branches(records: list[dict[str, Any]]) -> str:
    """A row for each room, of its last run, and a line for each of its files with most branches not taken."""
    last = {one["room"]: one for one in records if one["campaign"] == "branches"}
    if not last:
        return "Not run yet."
    lines = ["| room | branches | taken | share | tests over in time | commit |", "|---|---|---|---|---|---|"]
    files = []
    for room, one in sorted(last.items()):
        taken, count = one["outcomes"].get(f"{room} taken", 0), max(one["cases"], 1)
        whole = "no" if one["outcomes"].get(f"{room} tests not over in time") else "yes"
        lines.append(f"| {room} | {count:,} | {taken:,} | {100.0 * taken / count:.1f} % | {whole} | {one['commit']} |")
        named = ", ".join(f"`{file.partition('/')[2]}` {missed}" for file, missed in one["worst"].items() if missed)
        files.append(f"- {room}: {named or 'none'}.")
    return "\n".join([*lines, "", "Files with most branches not taken, and their numbers:", "", *files])


def limits(records: list[dict[str, Any]]) -> str:
    """A line for each family that was held to a limit."""
    own = [key for one in records if one["campaign"] == "clocks" for key in one["outcomes"]]
    return "\n".join(f"- {re.sub(NEGATIVE, 'seconds taken not known', key)}" for key in own) or "Not run yet."


def failures(records: list[dict[str, Any]]) -> str:
    """Every failure, with what became of it."""
    found = [failure for one in records if one["campaign"] != "mutants" for failure in one["failures"]]
    lines = []
    for failure in found:
        named = " ".join(failure.split()[:2]), "not explained yet"
        name, known = next((one for one in MENDED.items() if failure.startswith(f"{one[0]} ")), named)
        lines.append(f"- {name.rstrip(':')}: {known}.")
    return "\n".join(lines) or "Nothing."


def places(records: list[dict[str, Any]]) -> str:
    """A row for each campaign and seed: which cases were run, when and at which commits; then the machines."""
    lines = ["| campaign | seed | cases | dates | commits |", "|---|---|---|---|---|"]
    for name in WHAT:
        if name in IN_TABLES:
            continue
        by_seed: dict[int, list[dict[str, Any]]] = {}
        for one in records:
            if one["campaign"] == name:
                by_seed.setdefault(one["seed"], []).append(one)
        for seed, own in by_seed.items():
            cases = "; ".join(f"{first:,} to {last:,}" for first, last in ranges(own))
            dates = " to ".join(sorted({min(one["date"] for one in own), max(one["date"] for one in own)}))
            commits = ", ".join(dict.fromkeys(one["commit"] for one in own if one.get("commit"))) or "not kept"
            lines.append(f"| {WHAT[name]} | {seed} | {cases} | {dates} | {commits} |")
    return "\n".join([*lines, "", *sorted({f"Machine: {one['machine']}." for one in records})])


IN_TABLES = {"mutants", "kernels", "branches"}  # their commits stand beside their figures


def ranges(records: list[dict[str, Any]]) -> list[tuple[int, int]]:
    """The first and the last case of each run of cases that follow on one another."""
    found: list[tuple[int, int]] = []
    for first, last in sorted((one["first"], one["first"] + one["cases"] - 1) for one in records):
        if found and first <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(last, found[-1][1])
        else:
            found.append((first, last))
    return found


TOP = """# What was tried and what held

The tests attack the package with damaged files, hostile problems, kills, failing system calls and time limits.
This page has the results. `python -m tests.attack --page` makes it from the records of the runs. Each case has
a seed and a number; for example, `python -m tests.attack --only model --seed 21 --first 1138 --count 1` runs
one case again."""
FILES = """Each case damages a sound file: bits, bytes, numbers, words, members of archives, headers or values.
A case holds if the file is refused with one line and exit code 2, or if it is read. Memory must stay within 64
MB and twice the size of the file, and no case may take more than a minute of processor time."""
JUDGED_FITS = """The fits cover every registered estimator and option: two classes and many in every way,
columns of labels and of targets, all penalties, nu, novelties, kernels, landmarks and stores; C and lambda from
1e-8 to 1e8, and weights over twelve powers of ten. Each problem is fitted by several solvers, to loose gaps and
to gaps out of reach, and stopped by epochs, seconds and callbacks. A judge that shares no code with the package
reads public attributes only. It computes, in 120 digits, the objective of the model and the bound that the
published dual variables prove, and tests whether a certificate's bound is above the objective of any model of
the same problem. `python -m tests.attack --only fits --seed S --count 20000` takes a new seed each time."""
PROOFS = """An earlier campaign judged results inside the package, on random problems near the limits of
floating point: features over twelve powers of ten, identical rows, weights over twelve powers of ten, C and
lambda from 1e-8 to 1e8, every loss, layout, precision, intercept and solver. A judge that shares no code with
the package computes both objectives of the result in 120 digits. A certificate is refuted if these objectives,
or another model of the same problem, contradict it."""
KILLS = """Runs are killed (SIGKILL) before one of their writes, renames or removals, and started again until
they end. The result must equal the result of an undisturbed run, to the last bit, and no other file may remain."""
RESUMED = """Fits of every machine, place and solver write a checkpoint after each step. They are killed before the
system calls that write it (of more than 40 such moments, some are evenly chosen), and at 20 random moments, again and
again until they end. The result must equal the result of an undisturbed run, to the last bit, and no other file may
remain. Kernel machines are not among them: their checkpoints promise no bits."""
SHARING = """Two processes train with one checkpoint, save models to one file, or convert to one store, at the same
time, five times each. Each must end as if it were alone, or with a line that says that another process is at work.
If one removes the temporary file of the other, the other warns that its checkpoint could not be written."""
CLUSTERS = """The scheduler of a cluster, the process of a client, a worker, or all workers at once are killed
(SIGKILL) at a random moment of a fit, with every solver of clusters and several losses, penalties and machines.
Without its scheduler, a fit must end within a minute, with `ClusterLostError` and the best model so far, if there is
one, whose certificate no model refutes. After the death of a client, the scheduler must forget its tasks, and the same
fit of another client must end certified. After the death of workers, others begin, and the fit must end certified, as
above. (On clusters, there are no checkpoints.)"""
FUZZING = """Atheris mutates the files, in half of the cases by their kind as above, and continues from those that reach
new branches of the readers' Python text (of a store, its header). The same limits hold."""
INJECTED = """Calls of the C library that write, read, sync, rename, open or map a file fail in turn, with each
possible error (no space, input/output error, too many open files, no memory, interrupted by a signal, or fewer
bytes than asked for). Every allocation above 1 MB fails in turn, too. The tasks write models, checkpoints,
stores, conversions and caches, and read files of every format. A task must end as undisturbed or with a
one-line error, leave the old file or the complete new file and nothing else, and succeed when it is repeated.
If a task makes many calls of a kind, up to 60 of them fail, evenly chosen (six and eight in the two runs of
2026-11-23). Each line has the number of cases, the call that failed, and the end of the task."""
DIFFERENTIAL = """Every solver fits the same problem, over dense and sparse rows in float64 and float32, with
one and two threads, and block by block from stores, and ends after 1, 5 or 200 epochs. No certificate's bound
may be above the objective of any of these models."""
WORKERS = """One of three workers of a Dask cluster is killed at a random moment of a fit, and a new worker
takes its place. The fit must end certified, and its weights must be as near to the weights of a fit in memory
as both certificates prove (with other penalties and with lambda, its objective)."""
MUTANTS = """One operator, number, comparison or condition of the source is changed, and tests run without compilation
until one fails. Of a change in the body of a function, those run that execute the changed statement, and of each test a
few cases. A mutant that no test notices survives. It is killed by a new test, or excused: `tests/attack/excused.py`
names each excused mutant, with the reason why no test can notice it. `python -m tests.attack.mutants certificate` runs
the campaign, and `--survivors` runs those again that any recorded run has left.

All mutants of the certificate were run, and of other files of problem/ and of rows/ some that were drawn; of files that
are not listed, none. "Noticed" counts the first run. "Noticed later" counts survivors of any run that new tests notice.
The last column has the commits of both. Tests that take some seconds without compilation are left out, so that a mutant
below may be one that only they notice. Mutants of the joint machines (`crammer_singer.py`, `multinomial.py`,
`joint_losses.py`) and of `terms.py` were tried with few tests but those of problem/. Before 2026-11-25, a deleted sign
or `not` may have stayed deleted in the later mutants of its file: several changes at once are noticed more easily."""
KERNELS = """Up to three cases of each test of rows, problems, solvers and ways to handle many classes run with every
kernel as plain Python (`NUMBA_DISABLE_JIT=1`), and with checked bounds (`NUMBA_BOUNDSCHECK=1`), for some
minutes each (the night's run takes eight): first one case of each test, then the others. As plain Python, a
case is stopped after two seconds of processor time, and the other cases of its test are not begun; a test
of compiled code itself, or of threads (`solvers.threaded`), is skipped. A kernel is met where it is called
as plain Python, or compiled with checked bounds. `python -m tests.attack.kernels` runs them. Before the
first run that is counted here, three faults of plain Python were found and mended: the step of the logistic
loss divided by zero at a bound, a fit could not resume from a checkpoint that holds records, and a state
had counts of another type."""
BRANCHES = """A branch is a step from one line to the next where two are possible (coverage.py). Each room of the
package is measured by its own folder of tests and a few of others, for some minutes; tests of whole runs take more.
Where the tests were not over in time, the share is that of the tests which had begun: a few cases of each test go
first. The text of kernels is not counted; `problem` was measured without compilation.
`python -m tests.attack.branches ROOM` also prints each branch not taken."""
MACHINES = """Some small fits are made here and on an emulated aarch64 processor: canonical weights have one
digest, and no certificate's bound is above the objective that the other machine found. Few of them run compiled
kernels so far.
`.ci/aarch64` also compares code for any processor of a kind (`NUMBA_CPU_NAME=generic`), which was not run yet."""
CLOCKS = """The figures are processor seconds without the compilation of kernels. A limit holds if a fit takes
at most a tenth and 0.1 seconds more. Other work on the machine takes processor time away within the limit, so a
fit may take less than it was given. A compilation during the limit is subtracted, which can leave nothing to
report."""
END = """The campaigns do not cover: faults of the disk below the C library (a loss of power, a disk that reports
writes it has not made); failing calls in the reports, in Dask's processes and in the kernel cache; failures of small
allocations; mutants of the files of problem/ and rows/ that are not in the table (kernel machines, nu, bounds of
paths, rescaling, fingerprints among them), mutants that were not drawn, and those of other rooms; the kernels above
that were not met with checked bounds, or as plain Python; the branches above that no test of their room takes; kills
on clusters with the last three forms of `tests/attack/workers.py`; processors other than x86-64 with compiled kernels;
macOS and Windows."""


def write(page: Path, records: Path = RECORDS) -> None:
    """Write the page from the records in a file."""
    page.write_text(written(json.loads(line) for line in records.read_text("utf-8").splitlines()), "utf-8")
