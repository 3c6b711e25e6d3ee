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
    for number, (kind, sources) in enumerate(seeds.kinds_in(folder / "sound").items()):
        if not sources:
            continue
        runs, before, after, said = fuzzed(kind, sources, folder, seed_of(seed, first, number), count)
        tally.cases += runs
        tally.outcomes[f"{kind} inputs"] += runs
        tally.outcomes[f"{kind} branches of sound files"] += before
        tally.outcomes[f"{kind} branches"] += after
        tally.failures += [f"fuzzing {seed}:{first} {one}" for one in said]
    return tally


def seed_of(seed: int, first: int, number: int) -> int:
    """A seed for libFuzzer, which takes 32 bits, and zero for the clock."""
    return 1 + int(np.random.default_rng([seed, first, number, 12]).integers(2**31 - 1))


def fuzzed(kind: str, sources: list[Path], folder: Path, seed: int, runs: int) -> tuple[int, int, int, list[str]]:
    """The inputs of a kind that were tried, the branches of sound files and of all, and the failures."""
    corpus, failures = folder / f"corpus-{kind}", folder / f"failures-{kind}.jsonl"
    corpus.mkdir(exist_ok=True)
    for source in sources:
        file = source / "store.json" if source.is_dir() else source
        (corpus / source.name).write_bytes(file.read_bytes())
    failures.unlink(missing_ok=True)
    words = [sys.executable, "-m", f"{__package__}.fuzzed", kind, str(folder), str(failures)]
    words += [f"-runs={runs}", f"-seed={seed}", f"-timeout={SECONDS}", f"-rss_limit_mb={MEMORY}", f"-max_len={LONGEST}"]
    words += [f"-artifact_prefix={folder}/", "-print_final_stats=1", str(corpus)]
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT), str(ROOT / "tests")])
    done = subprocess.run(words, capture_output=True, cwd=ROOT, env=os.environ | {"PYTHONPATH": path}, check=False)
    told = done.stderr.decode(errors="replace")
    covered = [int(found) for found in re.findall(r"cov: (\d+)", told)]
    tried = re.findall(r"number_of_executed_units: (\d+)", told) or re.findall(r"#(\d+)\s", told)
    if not tried or not covered:
        raise RuntimeError(f"the fuzzer could not begin: {told[-2000:]}")
    lines = map(json.loads, failures.read_text().splitlines() if failures.exists() else [])
    said = [f"{line['kind']}: {line['outcome']}; its input is {line['input'][:2000]}" for line in lines]
    if done.returncode:
        said.append(f"{kind}: the process ended with {done.returncode}: {told[-300:]}")
    return int(tried[-1]), covered[0], covered[-1], said
