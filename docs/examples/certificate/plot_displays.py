"""
Displays of the gap and of a path
=================================

``GapDisplay`` draws the gap during a fit. ``PathDisplay`` draws the proven gap and the error over C.
Both work like scikit-learn's displays.
"""

# %%
# A fit, and how its gap closed. Every point is a proof.
import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from saddlesvm import LinearSVC
from saddlesvm.lab import GapDisplay, PathDisplay

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X = StandardScaler().set_output(transform="pandas").fit_transform(X)

model = LinearSVC(loss="hinge", solver="sdca", tol=1e-5, random_state=0).fit(X, y)
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
GapDisplay.from_estimator(model, ax=ax)

# %%
# A model whose C was chosen: the path behind it. The gap is proven for every C; the error is estimated by
# leave-one-out.
chosen = LinearSVC(C="auto", loss="squared_hinge", random_state=0).fit(X, y)
print(f"C = {chosen.C_:.3g}, {chosen.outcome_}")
figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for ax, kind in zip(axes, ("gap", "error"), strict=True):
    PathDisplay.from_estimator(chosen, kind=kind, ax=ax)
