"""Seconds to read LIBSVM text, against scikit-learn's reader, against training on it, and as a store.

python -m benchmarks.peers.reading --data DIR --repeats 5
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from benchmarks.common import interleaved, seconds
from saddlesvm import LinearSVC
from saddlesvm.data import convert, read

COLUMNS = (
    "file",
    "MB of text",
    "MB/s",
    "read, s",
    "scikit-learn, s",
    "times faster",
    "converted to a store, s",
    "store opened, s",
    "training, s",
)


def spellings(folder: Path, source: Path) -> list[Path]:
    """The same text plain, and compressed with gzip and bzip2."""
    text = bz2.decompress(source.read_bytes())
    name = source.name.removesuffix(".bz2")
    files = {name: text, f"{name}.gz": gzip.compress(text, 6), f"{name}.bz2": source.read_bytes()}
    for given, content in files.items():
        (folder / given).write_bytes(content)
    return [folder / given for given in files]


def synthetic(folder: Path, n: int, d: int) -> Path:
    """Dense rows with 16 digits a value: the most that a number can cost."""
    random = np.random.default_rng(0)
    X = random.standard_normal((n, d))
    path = folder / f"dense-{n}x{d}.svm"
    dump_svmlight_file(X, np.where(X[:, 0] + random.normal(size=n) > 0, 1, -1), str(path), zero_based=False)
    return path


def compared(path: Path, n_text: int, repeats: int) -> list[str]:
    """A line of the table."""
    works = {"ours": lambda: read(path), "theirs": lambda: load_svmlight_file(str(path))}
    read(path)
    medians = interleaved(works, repeats)
    table = medians["ours"][1]
    X, y = medians["theirs"][1]
    if (table.X != X).nnz or not np.array_equal(table.y, y):
        raise AssertionError(f"{path}: the two readers disagree")
    target = path.with_name(path.name + ".store")
    first = seconds(lambda: convert(path, target))[0]
    mapped = interleaved({"mapped": lambda: read(target)}, repeats)["mapped"][0]
    fits = {"fit": lambda: LinearSVC(loss="hinge", random_state=0).fit(table.X, table.y)}
    fits["fit"]()
    training = interleaved(fits, repeats)["fit"][0]
    ours = medians["ours"][0]
    theirs = medians["theirs"][0]
    figures = (n_text / 1e6, n_text / 1e6 / ours, ours, theirs, theirs / ours, first, mapped, training)
    return [path.name, *(f"{figure:.3g}" for figure in figures)]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with a9a.bz2 and rcv1-binary.bz2")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for source in ("a9a.bz2", "rcv1-binary.bz2"):
            files = spellings(folder, options.data / source)
            for path in files:
                print(f"| {' | '.join(compared(path, files[0].stat().st_size, options.repeats))} |", flush=True)
        path = synthetic(folder, 20_000, 100)
        print(f"| {' | '.join(compared(path, path.stat().st_size, options.repeats))} |")


if __name__ == "__main__":
    main()
