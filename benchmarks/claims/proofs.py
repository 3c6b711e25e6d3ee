"""Do proofs hold what their page says?

    python -m benchmarks.claims.proofs campaigns --count 10000
    python -m benchmarks.claims.proofs plain DATA.svm

`campaigns` draws problems whose proofs must agree with their certificates, and tampers with proofs. `plain` measures
the check of a proof by the checker's file alone, in processor time.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from saddlesvm import LinearSVC, NotCertifiedWarning, checker
from saddlesvm.data import read

ROOT = Path(__file__).resolve().parents[2]
LOSSES = ("squared_hinge", "logistic")


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Processor seconds of some work, and what it returned."""
    began = time.process_time()
    found = work()
    return time.process_time() - began, found


def campaigns(count: int) -> None:
    """Both campaigns, and what they came to."""
    sys.path.insert(0, str(ROOT / "tests"))
    from attack.proofs import agreements, forgeries

    with tempfile.TemporaryDirectory() as folder:
        for campaign in (agreements, forgeries):
            seconds, found = timed(lambda campaign=campaign: campaign(Path(folder), 1, 0, count))
            print(found, *found.failures, f"{seconds:.0f} s", sep="\n  ", flush=True)


def plain(data: str) -> None:
    """The check in plain Python: seconds, and bytes of the proof."""
    table = read(data)
    for loss in ("hinge", *LOSSES):
        model = LinearSVC(loss=loss, tol=1e-6, random_state=0).fit(table.X, table.y)
        made, proof = timed(lambda model=model: model.proof(table.X, table.y))
        text = json.dumps(proof)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "proof.json")
            path.write_text(text)
            before = os.times().children_user
            run = [sys.executable, "-I", "-S", checker.__file__, str(path), data]
            said = subprocess.run(run, capture_output=True, text=True).stdout.strip()
            seconds = os.times().children_user - before
        listed = len(proof["parts"][0]["multipliers"])
        print(f"{loss}: {len(text):,} bytes, {listed} multipliers, made in {made:.1f} s, checked in {seconds:.1f} s")
        print(f"  {said}", flush=True)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("campaigns", "plain"))
    parser.add_argument("data", nargs="?")
    parser.add_argument("--count", type=int, default=100)
    given = parser.parse_args()
    warnings.simplefilter("ignore", NotCertifiedWarning)
    if given.what == "campaigns":
        campaigns(given.count)
    else:
        plain(given.data)


if __name__ == "__main__":
    main()
