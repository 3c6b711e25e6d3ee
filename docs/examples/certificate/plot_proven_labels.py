"""
Labels that no solver can change
================================

A rough fit and an exact fit disagree near the boundary. ``decision_bounds`` bounds the score of the exact optimum,
and so shows where. ``is_constant`` proves which labels are the same for every C between two ends.
"""

# %%
# A model that was stopped early, and the points whose label is still proven to be the label of the exact optimum. The
# proof continues from the weights of the model.
import matplotlib.pyplot as plt
import numpy as np

from saddlesvm import LinearSVC

random = np.random.default_rng(0)
y = np.arange(200) % 2
X = random.normal(size=(200, 2)) + 1.2 * y[:, None]
points = random.uniform(-3, 4, size=(1500, 2))

rough = LinearSVC(loss="logistic", C=0.1, tol=0.3, random_state=0).fit(X, y)
proven = rough.is_proven(points)
print(f"{proven.mean():.1%} of the labels of a fit to tol=0.3 are the optimum's")

# %%
# ``settle`` trains until all labels are proven.
final = LinearSVC(loss="logistic", C=0.1, tol=0.3, random_state=0).fit(X, y)
print(f"after settling: {final.settle(points).mean():.1%}")

# %%
# The same for every C: bands between which the scores of the exact optima lie.
path = LinearSVC.path(X, y, C=(0.01, 1.0), gap=1e-4, loss="logistic", random_state=0)
constant = path.is_constant(points)
print(f"{constant.mean():.1%} of the labels are the same for every C from 0.01 to 1")

shown = points[[np.argmin(np.abs(points @ [1, 1] - level)) for level in (0.4, 1.1, 2)]]
bands = path.decision_bands(shown)
edges = path.band_edges()
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for mask, color, name in (
    (constant, "C0", "the same label for every C"),
    (~constant, "C1", "depends on C, or not proven"),
):
    left.plot(*points[mask].T, ".", color=color, markersize=3, label=name)
left.plot(*points[~proven].T, "o", color="C3", label="the rough fit's may be wrong")
left.set(title="labels of points")
left.legend(loc="lower left")
for row in range(len(shown)):
    low, high = (np.array([band[end][row, 0] for band in bands]) for end in (0, 1))
    right.fill_between(edges, [*low, low[-1]], [*high, high[-1]], step="post")
right.axhline(0, color="black", linewidth=0.8)
right.set(xscale="log", xlabel="C", ylabel="score", title="bounds of three scores")
