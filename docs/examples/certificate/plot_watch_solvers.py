"""
Watch solvers converge
======================

The lab runs solvers side by side on your data, certifies their iterates, draws the gaps, and states the findings in
words. ``saddlesvm compare DATA --report report.html`` does the same on the command line.
"""

# %%
from saddlesvm import SDCA
from saddlesvm.data import load_bundled
from saddlesvm.lab import compare, figures

toy = load_bundled("toy")
found = compare(
    toy.X,
    toy.y,
    solvers=["dcd", "dcd:shrinking=false", SDCA(sampling="replacement"), "pegasos"],
    C=1.0,
    repeats=3,
    budget=1.0,
    tol=1e-6,
    name="toy",
)
print(*found.verdict(), sep="\n")

# %%
# Lines are medians over three seeds, and bands hold the middle half of them. Coordinate descent ends; Pegasos goes on
# falling slowly, as its theory says.
import matplotlib.pyplot as plt

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
figures.curve_chart(found.trace, "gap").draw(left)
figures.curve_chart(found.trace, "suboptimality").draw(right)

# %%
# Everything is in one tidy table, a row a certificate.
print(
    found.trace[["solver", "repeat", "epoch", "primal", "dual", "relative_gap"]]
    .tail(3)
    .to_string(index=False)
)
