"""``python -m tests.attack --hours 1``: all campaigns in turn, some cases each time, until the time is over.

The seed says which campaign is the first, so that each has its turn on some night.
``--record`` keeps what each campaign came to; ``--page`` writes the page about it from all that was kept.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from .campaigns import AT_A_TIME, CAMPAIGNS, EVERYTHING, prepare
from .page import RECORDS, keep, record_of, write

PAGE = Path(__file__).resolve().parents[2] / "docs" / "what-held.md"


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
    end, turn, failed = time.monotonic() + 3600.0 * given.hours, 0, 0
    names = given.only or list(EVERYTHING)
    names = names[given.seed % len(names) :] + names[: given.seed % len(names)]
    with tempfile.TemporaryDirectory() as folder:
        if {*CAMPAIGNS, "fuzzing"} & {*names}:
            prepare(Path(folder))
        while time.monotonic() < end and not (given.count and turn):
            for name in names:
                began = time.monotonic()
                if began >= end:
                    break
                size = given.count or AT_A_TIME.get(name, 1000)
                first = given.first + turn * size
                chosen = {"way": given.way} if given.way and name == "fits" else {}
                found = EVERYTHING[name](Path(folder), given.seed, first, size, **chosen)
                if given.record and found.cases:
                    keep(record_of(found, given.seed, first, time.monotonic() - began), RECORDS)
                print(found, *found.failures, sep="\n  ", flush=True)
                failed += len(found.failures)
            turn += 1
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
