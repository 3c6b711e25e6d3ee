"""The picture of the page on kernels: test accuracy and the gap to the exact optimum against the number of landmarks.

python -m benchmarks.makers.landmarks_picture docs/landmarks.png
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons

from saddlesvm import SVC, certify_kernel

COUNTS = (2, 4, 8, 16, 32, 64, 128, 256, 512)


def main() -> None:
    """Draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("picture", type=Path)
    options = parser.parse_args()
    X, y = make_moons(4000, noise=0.2, random_state=0)
    train, test = slice(0, 2000), slice(2000, 4000)
    machine = SVC(gamma=1.0, tol=1e-4, random_state=0)
    exact = machine.fit(X[train], y[train]).score(X[test], y[test])
    accuracies, gaps = [], []
    for count in COUNTS:
        model = SVC(gamma=1.0, tol=1e-4, approximation=count, random_state=0).fit(X[train], y[train])
        accuracies.append(model.score(X[test], y[test]))
        gaps.append(certify_kernel(model, X[train], y[train]).relative_gap)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    left.plot(COUNTS, accuracies, "o-")
    left.axhline(exact, color="0.5", linestyle="--")
    left.annotate("exact kernel", (COUNTS[0], exact), xytext=(0, -14), textcoords="offset points", color="0.4")
    left.set(xscale="log", xlabel="landmarks", ylabel="test accuracy")
    right.plot(COUNTS, gaps, "o-")
    right.set(xscale="log", yscale="log", xlabel="landmarks", ylabel="certified gap to the exact optimum")
    figure.savefig(options.picture, dpi=110)


if __name__ == "__main__":
    main()
