"""
Rows that are probably mislabelled
==================================

``audit`` leaves out every row in turn, without training again, and lists the rows whose label the other rows
contradict.
"""

# %%
# Two clouds, with eight labels flipped.
import matplotlib.pyplot as plt
import numpy as np

from saddlesvm import LinearSVC, audit

random = np.random.default_rng(0)
right = np.arange(200) % 2
X = random.normal(size=(200, 2)) + 2.5 * right[:, None]
turned = random.permutation(200)[:8]
y = right.copy()
y[turned] = 1 - y[turned]

model = LinearSVC(loss="logistic", C=1.0, random_state=0).fit(X, y)
found = audit(model, X, y)
first = found.suspects[:8]
print(f"{np.isin(first, turned).sum()} of the first 8 suspects were turned")
print(f"leave-one-out error: {found.leave_one_out.error_low:.3f}, proven")

# %%
# Suspects are circled. Decisions that a single row may change are drawn as crosses.
figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
for stable, marker in ((True, "o"), (False, "X")):
    some = found.stable == stable
    axes.scatter(*X[some].T, c=y[some], cmap="coolwarm", marker=marker, s=25)
axes.scatter(
    *X[first].T, s=160, facecolors="none", edgecolors="black", label="first suspects"
)
axes.legend()
plt.show()
