"""
Labels that no solver can change
================================

A rough fit and an exact fit disagree near the boundary. ``decision_bounds`` bounds the score of the exact optimum,
and so shows where.
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
figure, ax = plt.subplots(figsize=(5, 4), layout="constrained")
for mask, color, name in (
    (proven, "C0", "the optimum's label"),
    (~proven, "C3", "the rough fit's may be wrong"),
):
    ax.plot(*points[mask].T, ".", color=color, markersize=3, label=name)
ax.set(title="labels of points")
ax.legend(loc="lower left")
plt.show()
