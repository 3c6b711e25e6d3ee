"""
Scale the features, or do not
=============================

Features of very different size are hard for coordinate methods. The default solver certifies such data, too, and a
set as small as this one by an interior point method. Scaling makes the data easy, and the penalty then treats all
features alike.
"""

# %%
# The heart data: cholesterol in the hundreds beside zeros and ones. The trace says what the solver decided.
from sklearn.preprocessing import StandardScaler

from saddlesvm import LinearSVC
from saddlesvm.data import load_bundled

heart = load_bundled("heart")
plain = heart.X
scaled = StandardScaler().fit_transform(plain)
for name, X in (("as they are", plain), ("scaled", scaled)):
    model = LinearSVC(loss="hinge", random_state=0).fit(X, heart.y)
    print(
        f"{name}: {model.outcome_}, {model.n_iter_} epochs,",
        f"accuracy {model.score(X, heart.y):.3f}",
    )
    for remark in filter(None, model.trace_.column("remark")):
        print("   ", remark)

# %%
# Coordinate descent alone shows the difference.
import matplotlib.pyplot as plt

from saddlesvm.lab import compare

figure, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
for name, X, line in (("as they are", plain, "--"), ("scaled", scaled, "-")):
    for solver, colour in (("dcd", "C0"), ("auto", "C1")):
        trace = compare(
            X, heart.y, solvers=solver, C=1.0, tol=1e-5, budget=0.5, name="heart"
        ).trace
        ax.loglog(
            trace["epoch"],
            trace["relative_gap"].cummin(),
            line,
            color=colour,
            label=f"{solver}, {name}",
        )
ax.set(xlabel="epochs", ylabel="relative gap")
ax.legend()
