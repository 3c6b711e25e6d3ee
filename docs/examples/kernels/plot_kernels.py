"""
Kernels, and when they pay
==========================

A kernel machine has a curved boundary, and its time grows with rows times support vectors. A linear machine on
features that approximate the kernel (Nystroem, random features) is often the better choice.
"""

# %%
# Two half moons, three boundaries. All three machines are certified.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits, make_moons
from sklearn.inspection import DecisionBoundaryDisplay
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline

from saddlesvm import SVC, LinearSVC

X, y = make_moons(400, noise=0.25, random_state=0)
machines = {
    "linear": LinearSVC(loss="hinge", random_state=0),
    "rbf kernel": SVC(C=1.0, gamma=1.0, random_state=0),
    "Nystroem, 30 rows": make_pipeline(
        Nystroem(gamma=1.0, n_components=30, random_state=0),
        LinearSVC(loss="hinge", random_state=0),
    ),
}
figure, axes = plt.subplots(1, 3, figsize=(10, 3.4), layout="constrained")
for ax, (name, machine) in zip(axes, machines.items(), strict=True):
    machine.fit(X, y)
    DecisionBoundaryDisplay.from_estimator(
        machine,
        X,
        response_method="decision_function",
        plot_method="contourf",
        levels=11,
        cmap="PuOr",
        alpha=0.8,
        ax=ax,
    )
    ax.scatter(*X.T, c=y, cmap="PuOr", edgecolors="k", s=12)
    ax.set(title=f"{name}: {machine.score(X, y):.2f}", xticks=[], yticks=[])

# %%
# Handwritten digits, even against odd: a task that is not linear in the pixels. With more sampled rows the linear
# machine comes near the exact kernel.
pixels, digits = load_digits(return_X_y=True)
pixels = pixels / 16.0
odd = digits % 2
train = np.arange(0, 1200)
test = np.arange(1200, 1797)
exact = SVC(C=10.0, gamma=0.05, random_state=0).fit(pixels[train], odd[train])
plain = LinearSVC(loss="hinge", C=1.0, random_state=0).fit(pixels[train], odd[train])
print(
    f"exact: {exact.support_.size} support vectors,",
    f"gap {exact.certificate_.relative_gap:.1e}",
)

counts = [10, 30, 100, 300, 1000]
scores = []
for count in counts:
    features = Nystroem(gamma=0.05, n_components=count, random_state=0)
    machine = make_pipeline(
        features, LinearSVC(loss="hinge", C=10.0, tol=1e-3, random_state=0)
    )
    scores.append(machine.fit(pixels[train], odd[train]).score(pixels[test], odd[test]))

figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
ax.semilogx(counts, scores, "o-", label="Nystroem and a linear machine")
ax.axhline(exact.score(pixels[test], odd[test]), color="C1", label="exact kernel")
ax.axhline(
    plain.score(pixels[test], odd[test]),
    color="C7",
    linestyle=":",
    label="linear, on the pixels",
)
ax.set(xlabel="sampled rows", ylabel="test accuracy")
ax.legend(loc="lower right")
