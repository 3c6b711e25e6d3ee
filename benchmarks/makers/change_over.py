"""Draw how coordinate descent, Newton's method and the automatic solver close the gap; prints what auto decided.

OMP_NUM_THREADS=1 python -m benchmarks.makers.change_over --data DIR --output docs/change-over.png
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from benchmarks.peers.any_c import load
from saddlesvm import LinearSVC, NotCertifiedWarning

STYLES = {
    "dcd": ("#0072B2", "--", "dcd: coordinate descent alone"),
    "newton": ("#009E73", ":", "newton: the finish alone"),
}
STYLES["auto"] = ("#D55E00", "-", "auto")


def main() -> None:
    """Fit, draw, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--max-time", type=float, default=10.0)
    options = parser.parse_args()
    X, y = load("fashion 2-0", options.data)
    figure, panels = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True)
    for panel, C in zip(panels, (1.0, 100.0), strict=True):
        for solver, (color, line, label) in STYLES.items():
            model = LinearSVC(
                loss="hinge",
                C=C,
                tol=1e-6,
                solver=solver,
                fit_intercept=False,
                max_time=options.max_time,
                random_state=0,
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", NotCertifiedWarning)
                model.fit(X[:2000], y[:2000])  # compile first
                model.fit(X, y)
            seconds = [row["seconds_solving"] + row["seconds_certifying"] for row in model.trace_]
            panel.semilogy(seconds, model.trace_.column("relative_gap"), line, color=color, marker=".", label=label)
            if solver == "auto":
                said = dict.fromkeys(row["remark"].split(" | ")[0] for row in model.trace_)
                print(f"C = {C:g}: certified {model.certificate_.relative_gap:.1e} in {seconds[-1]:.2f} s")
                print("\n".join(f"  {one}" for one in said if one))
        panel.set(title=f"C = {C:g}", xlabel="seconds", xlim=(0, None))
        panel.grid(alpha=0.3)
        panel.axhline(1e-6, color="grey", linewidth=0.8)
    panels[0].set_ylabel("relative gap, proven")
    panels[1].legend()
    figure.suptitle("Fashion-MNIST pullover against T-shirt, 12,000 x 784, hinge loss")
    figure.tight_layout()
    figure.savefig(options.output, dpi=80)


if __name__ == "__main__":
    main()
