"""Do tables and texts by one command reach what is written by hand with scikit-learn, and in how much memory?

PYTHONPATH=tests python -m benchmarks.claims.tables mixed                       three made tables, five draws each
PYTHONPATH=tests python -m benchmarks.claims.tables reuters --data DIR          (DIR holds reuters21578.jsonl.xz)
PYTHONPATH=tests python -m benchmarks.claims.tables large --megabytes 1000 --memory 64M

The memory of "large" is anonymous: pages of files, which the system can take back at any time, do not count.
"""

from __future__ import annotations

import argparse
import json
import lzma
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC as TheirSVC

from benchmarks.claims.out_of_core import MemoryWatch
from saddlesvm.table import encoder
from support.tables import adult_like, frame_of, notes, titanic_like

BATCH = 2_000  # rows of a step of SGD
SGD_PASSES = 3
CLASSES = ("earn", "acq", "crude", "trade", "money-fx", "interest", "grain", "ship")
MEASURED = """
import json, sys, time
import saddlesvm, saddlesvm.cli.train, sklearn.pipeline
from benchmarks.claims.out_of_core import MemoryWatch
from saddlesvm.cli import main
with MemoryWatch() as memory:
    cpu, clock = time.process_time(), time.perf_counter()
    main(sys.argv[1:])
    told = {"cpu": time.process_time() - cpu, "seconds": time.perf_counter() - clock}
print(json.dumps(told | {"before": memory.before, "most": memory.most}), file=sys.stderr)
"""


def by_command(*words: object) -> tuple[dict[str, Any], dict[str, Any]]:
    """The facts that ``saddlesvm train`` prints; the anonymous bytes of its process before any data and, at most, above
    them; and seconds by the processor and by the clock."""
    command = [sys.executable, "-c", MEASURED, "train", *map(str, words), "--json"]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(told.stdout), json.loads(told.stderr.splitlines()[-1])


def mixed() -> None:
    """Accuracy on 2,000 rows of encoders that were made by :func:`encoder` and by hand, before the same machine."""
    for made in (adult_like, titanic_like, notes):
        table, y = made(12_000)
        by_hand = made.by_hand(table)
        frame = frame_of(table)
        apart = []
        for seed in range(5):
            order = np.random.default_rng(seed).permutation(12_000)
            train = order[:8_000]
            test = order[10_000:]
            ours = make_pipeline(encoder(frame.iloc[train]), TheirSVC(random_state=0)).fit(frame.iloc[train], y[train])
            theirs = TheirSVC(random_state=0).fit(by_hand[train], y[train])
            apart.append(100.0 * (ours.score(frame.iloc[test], y[test]) - theirs.score(by_hand[test], y[test])))
        print(
            f"{made.__name__}: points above the pipeline by hand, mean {np.mean(apart):+.2f}, least {min(apart):+.2f}"
        )


def reuters(data: Path, folder: Path) -> None:
    """Stories of one of eight topics by their text, the ModApte split; scikit-learn's own pipeline beside."""
    parts: dict[str, list[dict[str, str]]] = {"TRAIN": [], "TEST": []}
    with lzma.open(data / "reuters21578.jsonl.xz", "rt", encoding="utf-8") as lines:
        for story in map(json.loads, lines):
            topics = [one for one in story["topics"] if one in CLASSES]
            if len(topics) == 1 and story["lewis"] in parts and story["text"]:
                parts[story["lewis"]].append({"text": f"{story['title']} {story['text']}", "topic": topics[0]})
    paths = {name: folder / f"{name}.csv" for name in parts}
    for name, rows in parts.items():
        pd.DataFrame(rows).to_csv(paths[name], index=False)
    facts, used = by_command(paths["TRAIN"], "--label", "topic", "--test", paths["TEST"])
    began = time.process_time()
    theirs = make_pipeline(TfidfVectorizer(), TheirSVC(random_state=0))
    texts, topics = ([[row[key] for row in parts[name]] for name in parts] for key in ("text", "topic"))
    score = theirs.fit(texts[0], topics[0]).score(texts[1], topics[1])
    worth = facts["quality"]
    print(f"reuters, {len(texts[0]):,} and {len(texts[1]):,} stories")
    print(f"  one command: {worth['test_accuracy']:.4f}, gap {worth['relative_gap']:.1e}, {used['cpu']:.1f} s")
    print(f"  TfidfVectorizer and LinearSVC: {score:.4f}, {time.process_time() - began:.1f} s")


def written(path: Path, n_bytes: int, seed: int) -> None:
    """Made reviews: words with Zipf's frequencies out of 60,000, some of which speak for a class."""
    random = np.random.default_rng(seed)
    words = np.array([f"w{k:x}" for k in range(60_000)])
    chances = 1.0 / np.arange(10, words.size + 10)
    chances = chances / chances.sum()
    weight = np.random.default_rng(0).normal(size=words.size)
    with path.open("w") as file:
        file.write("text,stars\n")
        while file.tell() < n_bytes:
            drawn = random.choice(words.size, (500, 120), p=chances)
            score = weight[drawn].mean(axis=1) + 0.05 * random.logistic(size=500)
            for row, one in zip(drawn, score, strict=True):
                file.write(f"{' '.join(words[row])},{int(one > 0)}\n")


def batches(path: Path) -> Iterator[tuple[list[str], list[int]]]:
    """The rows of a file some at a time."""
    for frame in pd.read_csv(path, chunksize=BATCH):
        yield frame["text"].tolist(), frame["stars"].tolist()


def by_sgd(path: Path, test: Path) -> float:
    """Accuracy of HashingVectorizer and SGDClassifier by ``partial_fit``, some passes over the file."""
    vectorizer = HashingVectorizer(n_features=1 << 18)
    model = SGDClassifier(random_state=0)
    for _ in range(SGD_PASSES):
        for texts, labels in batches(path):
            model.partial_fit(vectorizer.transform(texts), labels, classes=[0, 1])
    right = [model.predict(vectorizer.transform(texts)) == np.array(labels) for texts, labels in batches(test)]
    return float(np.concatenate(right).mean())


def large(megabytes: int, memory: str, folder: Path) -> None:
    """Text that is larger than the memory, by one command; SGD beside."""
    path = folder / "large.csv"
    test = folder / "test.csv"
    written(path, megabytes << 20, 1)
    written(test, 4 << 20, 2)
    facts, used = by_command(path, "--label", "stars", "--memory", memory, "--test", test, "--tol", "1e-3")
    worth = facts["quality"]
    read = facts["data"]
    print(f"{megabytes} MB of text, {read['rows']:,} rows, {read['features']:,} words, memory {memory}")
    print(f"  one command: {worth['test_accuracy']:.4f}, gap {worth['relative_gap']:.1e}, ", end="")
    print(f"{used['cpu']:.0f} s of processor time, {used['seconds']:.0f} s")
    print(
        f"  anonymous memory: {used['before'] >> 20} MB before any data, at most {used['most'] >> 20} MB more",
        flush=True,
    )
    with MemoryWatch() as watch:
        cpu = time.process_time()
        clock = time.perf_counter()
        score = by_sgd(path, test)
        cpu = time.process_time() - cpu
        clock = time.perf_counter() - clock
    print(f"  HashingVectorizer and SGDClassifier, {SGD_PASSES} passes: {score:.4f}, ", end="")
    print(f"{cpu:.0f} s of processor time, {clock:.0f} s, at most {watch.most >> 20} MB more than before")


def main() -> None:
    """Print the lines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("mixed", "reuters", "large"))
    parser.add_argument("--data", type=Path)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--memory", default="150M")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        runs: dict[str, Callable[[], None]] = {
            "mixed": mixed,
            "reuters": lambda: reuters(options.data, Path(folder)),
            "large": lambda: large(options.megabytes, options.memory, Path(folder)),
        }
        runs[options.what]()


if __name__ == "__main__":
    main()
