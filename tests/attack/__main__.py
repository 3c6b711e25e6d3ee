"""``python -m tests.attack --hours 1``: all campaigns in turn, some cases each time, until the time is over.

The seed says which campaign is the first, so that each has its turn on some night. The cases of a turn follow from the
seconds of a case in the last record: each campaign has about the same time, and no more than is left.
``--record`` keeps what each campaign came to; ``--page`` writes the page about it from all that was kept.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

from .campaigns import AT_A_TIME, CAMPAIGNS, EVERYTHING, prepare
from .page import RECORDS, keep, record_of, write

LEAST = 1.0  # seconds of a turn of a campaign, at least: records are in whole seconds
FIRST = 10  # cases of a campaign without a record
TURNS = 2  # of every campaign in the given time, where its cases are short enough
PAGE = Path(__file__).resolve().parents[2] / "docs" / "what-held.md"


def seconds_of_cases(records: Path) -> dict[str, float]:
    """The seconds of a case of each campaign in its last record."""
    found = {}
    for line in records.read_text("utf-8").splitlines():
        record = json.loads(line)
        found[record["campaign"]] = max(record["seconds"], LEAST) / max(record["cases"], 1)
    return found


def size_of(name: str, of_case: float, share: float, left: float) -> int:
    """The number of cases of a campaign's turn; 0 where even one takes longer than is left."""
    if of_case > left:
        return 0
    return max(1, min(AT_A_TIME.get(name, 1000), int(share / of_case)))


def main() -> int:
    """Run the campaigns; 1 where anything failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.attack", description=__doc__)
    parser.add_argument("--hours", type=float, default=0.1)
    parser.add_argument("--only", choices=sorted(EVERYTHING), action="append", help="this campaign; may be repeated")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--count", type=int, help="cases of each campaign, whatever time they take")
    parser.add_argument("--way", help="of the fits, only those with this option, such as approximation, or estimator")
    parser.add_argument("--record", action="store_true", help="keep what the campaigns came to, for the page")
    parser.add_argument("--page", action="store_true", help="write docs/what-held.md from what was kept, and end")
    given = parser.parse_args()
    if given.page:
        write(PAGE)
        return 0
    end, failed = time.monotonic() + 3600.0 * given.hours, 0
    names = given.only or list(EVERYTHING)
    names = names[given.seed % len(names) :] + names[: given.seed % len(names)]
    share = 3600.0 * given.hours / (TURNS * len(names))
    of_case = seconds_of_cases(RECORDS)
    first = dict.fromkeys(names, given.first)
    with tempfile.TemporaryDirectory() as folder:
        if {*CAMPAIGNS, "fuzzing"} & {*names}:
            prepare(Path(folder))
        while names and (left := end - time.monotonic()) > 0.0:
            name = names.pop(0)
            size = given.count or size_of(name, of_case.get(name, share / FIRST), share, left)
            if not size:
                continue
            began = time.monotonic()
            chosen = {"way": given.way} if given.way and name == "fits" else {}
            found = EVERYTHING[name](Path(folder), given.seed, first[name], size, **chosen)
            if given.record and found.cases:
                keep(record_of(found, given.seed, first[name], time.monotonic() - began), RECORDS)
            print(found, *found.failures, sep="\n  ", flush=True)
            failed += len(found.failures)
            first[name] += size
            of_case[name] = (time.monotonic() - began) / size
            names += [] if given.count else [name]
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
