"""
Many classes
============

Ten digits, and three ways to train them: each class against the rest, each pair of classes, or all classes in one
problem. All three are certified.
"""

# %%
import time

import numpy as np
from sklearn.datasets import load_digits

from saddlesvm import LinearSVC

X, y = load_digits(return_X_y=True)
X = X / 16.0
train = np.arange(0, 1200)
test = np.arange(1200, len(y))

models = {}
for split in ("ovr", "ovo", "crammer_singer"):
    began = time.perf_counter()
    models[split] = LinearSVC(
        multi_class=split, loss="hinge", C=0.5, tol=1e-3, random_state=0
    )
    models[split].fit(X[train], y[train])
    seconds = time.perf_counter() - began
    accuracy = models[split].score(X[test], y[test])
    print(
        f"{split:15s} {len(models[split].certificates_):3d} problems  ",
        f"{models[split].certificate_.relative_gap:.1e}   accuracy {accuracy:.3f}  ",
        f"{seconds:.2f} s (compiling included)",
    )

# %%
# The weights of each class, one against the rest: blue is evidence for the digit, red against it.
import matplotlib.pyplot as plt

weights = models["ovr"].coef_.reshape(-1, 8, 8)
figure, axes = plt.subplots(2, 5, figsize=(8, 3.6), layout="constrained")
for digit, ax in enumerate(axes.flat):
    ax.imshow(
        weights[digit],
        cmap="RdBu",
        vmin=-np.abs(weights).max(),
        vmax=np.abs(weights).max(),
    )
    ax.set(title=str(digit), xticks=[], yticks=[])
