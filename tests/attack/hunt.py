"""Attacks with files, in processes that may die: what each case came to, and what was never allowed to happen."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

PATIENCE = 60.0  # processor seconds without a word, after which a case counts as hung
COMPILATION = 600.0  # processor seconds before the first word, which takes the compilation of kernels
IDLE = 10  # times as long on the clock, after which a case that uses no processor counts as hung, too
ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Findings:
    """What became of the cases of one kind."""

    kind: str
    cases: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    slowest: float = 0.0
    largest: int = 0

    def note(self, found: dict) -> None:
        """Count one case."""
        self.cases += 1
        outcome = found["outcome"]
        self.slowest = max(self.slowest, found.get("seconds", 0.0))
        self.largest = max(self.largest, found.get("peak", 0))
        if outcome.startswith("FAILED"):
            self.failures.append(f"{self.kind} {found['number']} ({found['name']}): {outcome}")
            outcome = "failed"
        self.outcomes[outcome] += 1

    def __str__(self) -> str:
        told = ", ".join(f"{count} {outcome}" for outcome, count in sorted(self.outcomes.items()))
        return (
            f"{self.kind}: {self.cases} cases: {told}; {len(self.failures)} failures; "
            f"slowest {self.slowest:.2f} s, most memory {self.largest / 1e6:.1f} MB"
        )


Job = tuple[str, int, int, int]  # a kind of files, a seed, the first case, and the one after the last


def hunt(kind: str, folder: Path, seed: int, first: int, count: int, patience: float = PATIENCE) -> Findings:
    """Run the cases `first` to ``first + count`` of a kind."""
    return hunt_all(folder, [(kind, seed, first, first + count)], patience)[kind]


def hunt_all(folder: Path, jobs: list[Job], patience: float = PATIENCE) -> dict[str, Findings]:
    """Run the cases of some jobs in one process; one that dies or hangs is replaced by another."""
    findings = {kind: Findings(kind) for kind, *_ in jobs}
    while jobs:
        words = [sys.executable, "-m", f"{__package__}.victim", str(folder), json.dumps(jobs)]
        path = os.pathsep.join([str(ROOT / "src"), str(ROOT), str(ROOT / "tests")])
        environment = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
        with subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, cwd=ROOT
        ) as child:
            begun, hung = _listen(child, findings, patience)
            child.kill() if hung else None
            said = child.stderr.read().decode(errors="replace") if child.stderr else ""
        if begun is None:
            if child.returncode:
                raise RuntimeError(f"the attack could not begin: {said[-2000:]}")
            return findings
        why = f"hung for {patience:.0f} s" if hung else f"ended with {child.returncode}: {said[-300:]}"
        findings[begun["kind"]].note({**begun, "outcome": f"FAILED: the process {why}"})
        kind, seed, _, last = jobs[begun["job"]]
        jobs = [(kind, seed, begun["number"] + 1, last), *jobs[begun["job"] + 1 :]]
    return findings


def spoke(child: subprocess.Popen, selector: selectors.BaseSelector, seconds: float) -> bool:
    """Wait for a word of a process, for so many seconds of its processor's time; whether it came.

    Other programs may take most of the machine, which is no fault of the case.
    """
    before = processor_seconds(child.pid)
    for _ in range(IDLE):
        if selector.select(seconds):
            return True
        if processor_seconds(child.pid) - before >= seconds:
            break
    return False


def processor_seconds(pid: int) -> float:
    """What a process has used of the processor; the clock's seconds where the system does not say."""
    try:
        used = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    except OSError:
        return time.monotonic()
    return sum(map(int, used)) / os.sysconf("SC_CLK_TCK")


def _listen(child: subprocess.Popen, findings: dict[str, Findings], patience: float) -> tuple[dict | None, bool]:
    """Note what a process says; the case that it did not finish, and whether it hung."""
    begun: dict | None = None
    assert child.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        wait = COMPILATION
        while spoke(child, selector, wait):
            line = child.stdout.readline()
            if not line:
                return begun, False
            found = json.loads(line)
            wait = patience if "number" in found else COMPILATION
            if "outcome" in found:
                findings[found["kind"]].note(found)
                begun = None
            elif "number" in found:
                begun = found
    return begun, True
