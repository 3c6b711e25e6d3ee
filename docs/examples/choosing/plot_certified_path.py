"""
A model and a proof for every C
===============================

A grid of C says nothing about the values between its points. A certified path makes a few fits, and has a model for
*every* C between two ends, with a proven bound on its distance from the optimum.
"""

# %%
# Ask for one per cent, everywhere from a thousandth to a hundred. The search puts fits where the proof needs them.
import numpy as np
from sklearn.preprocessing import StandardScaler

from saddlesvm import LinearSVC
from saddlesvm.data import load_bundled

heart = load_bundled("heart")
X = StandardScaler().fit_transform(heart.X)
y = heart.y
path = LinearSVC(loss="hinge", random_state=0).path(X, y, C=(1e-3, 1e2), gap=1e-2)
print(
    path.outcome,
    "with",
    path.Cs.size,
    "fits; the largest gap anywhere is",
    f"{path.proven_gap:.2e}",
)

# %%
# A model for any C, whether it was fitted or not, with its own certificate.
model = path.model(0.037)
print(model.certificate_)
print(f"training accuracy {model.score(X, y):.3f}")

# %%
# What is proven (the curve stays below the line), and what was fitted (the dots). Checked at one place: a fit of its
# own at that C finds no objective below the proven bound.
import matplotlib.pyplot as plt

grid = path.grid(400)
proven = np.array([path.certificate(C).relative_gap for C in grid])
check = (
    LinearSVC(C=0.037, loss="hinge", tol=1e-8, random_state=0).fit(X, y).certificate_
)
assert (
    path.certificate(0.037).dual
    <= check.primal
    <= path.certificate(0.037).primal * (1 + 1e-8)
)

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.loglog(grid, np.maximum(proven, 1e-6), label="proven for every C")
left.plot(
    path.Cs, [path.certificate(C).relative_gap for C in path.Cs], "o", label="fits"
)
left.axhline(path.gap, color="C7", linestyle=":", label="asked for")
left.set(xlabel="C", ylabel="relative gap", ylim=(1e-6, 3e-2))
left.legend(loc="lower left")
right.semilogx(grid, np.array([path.coef(C).ravel() for C in grid]))
right.set(xlabel="C", ylabel="weights")
