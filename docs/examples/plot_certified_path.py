"""
A model and a proof for every C
===============================

A handful of fits prove a model for *every* C between two ends. Leave-one-out estimates along the path then choose one.
"""

import matplotlib.pyplot as plt
from sklearn.preprocessing import StandardScaler

from saddlesvm import LinearSVC
from saddlesvm.data import load_bundled
from saddlesvm.lab import PathDisplay

heart = load_bundled("heart")
X = StandardScaler().fit_transform(heart.X)

# %%
# ``C="auto"`` finds the path, looks along it, and fits at the C that it chose.
model = LinearSVC(C="auto", loss="logistic", random_state=0).fit(X, heart.y)
print(f"{len(model.path_.knots)} fits prove a relative gap of {model.path_.proven_gap:.1e} for every C")
print(f"chosen: C = {model.C_:.3g}; {model.certificate_}")

# %%
# Above: what is proven. The dots are the fits; the curve is the gap of the model in between, the best mixture of its
# two neighbours. Below: the error that each row would meet if it had been left out, and the weights.
figure, axes = plt.subplots(2, 2, figsize=(11, 7.5))
for kind, ax in zip(("gap", "band", "error", "weights"), axes.ravel(), strict=True):
    PathDisplay.from_estimator(model, kind=kind, ax=ax)
figure.tight_layout()
