"""Fuzzing by coverage: Atheris mutates files of every kind, and goes on from those that reach new branches.

A case is an input. Needs ``pip install atheris``.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np

from . import seeds
from .hunt import ROOT
from .tally import Tally

THERE = importlib.util.find_spec("atheris") is not None
SECONDS = 60  # for one input, after which it counts as hung
MEMORY = 4096  # MB, after which an input counts as a bomb
LONGEST = 1 << 16  # bytes of an input


def fuzzing(folder: Path, seed: int, first: int, count: int) -> Tally:
    """Fuzz the reader of every kind of file with so many inputs; `first` is a part of the seed."""
    tally = Tally("fuzzing")
    kinds = {kind: sources for kind, sources in seeds.kinds_in(folder / "sound").items() if sources}
    options = [f"-runs={count}", f"-timeout={SECONDS}", f"-rss_limit_mb={MEMORY}", f"-max_len={LONGEST}"]
    options += [f"-artifact_prefix={folder}/", "-print_final_stats=1"]
    jobs = []
    for number, (kind, sources) in enumerate(kinds.items()):
        corpus = folder / f"corpus-{kind}"
        corpus.mkdir(exist_ok=True)
        for source in sources:
            file = source / "store.json" if source.is_dir() else source
            (corpus / source.name).write_bytes(file.read_bytes())
        (folder / f"failures-{kind}").unlink(missing_ok=True)
        jobs.append([kind, f"-seed={seed_of(seed, first, number)}", *options, str(corpus)])
    words = [sys.executable, "-m", f"{__package__}.fuzzed", str(folder), json.dumps(jobs)]
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT), str(ROOT / "tests")])
    subprocess.run(words, cwd=ROOT, env=os.environ | {"PYTHONPATH": path}, capture_output=True, check=True)
    for kind in kinds:
        runs, before, after, said = came_to(kind, folder)
        tally.cases += runs
        tally.outcomes[f"{kind} inputs"] += runs
        tally.outcomes[f"{kind} branches of sound files"] += before
        tally.outcomes[f"{kind} branches"] += after
        tally.failures += [f"fuzzing {seed}:{first} {kind}: {one}" for one in said]
    return tally


def seed_of(seed: int, first: int, number: int) -> int:
    """A seed for libFuzzer, which takes 32 bits, and zero for the clock."""
    return 1 + int(np.random.default_rng([seed, first, number, 12]).integers(2**31 - 1))


def came_to(kind: str, folder: Path) -> tuple[int, int, int, list[str]]:
    """The inputs of a kind that were tried, the branches of sound files and of all, and the failures."""
    said, failures = (folder / f"said-{kind}").read_text(errors="replace"), folder / f"failures-{kind}"
    covered = [int(found) for found in re.findall(r"cov: (\d+)", said)]
    tried = re.findall(r"number_of_executed_units: (\d+)", said) or re.findall(r"#(\d+)\s", said)
    if not tried or not covered:
        raise RuntimeError(f"the fuzzer of {kind} could not begin: {said[-2000:]}")
    lines = map(json.loads, failures.read_text().splitlines() if failures.exists() else [])
    found = [f"{line['outcome']}; its input is {line['input']}" for line in lines]
    if not said.endswith("\nended with 0\n"):
        found.append(f"the process ended: {said[-300:]}")
    return int(tried[-1]), covered[0], covered[-1], found
