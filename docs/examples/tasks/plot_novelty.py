"""
Novelty detection with one class
================================

``OneClassSVM`` learns where ordinary rows lie, and reports everything else as new. At most the share ``nu`` of the
ordinary rows lies outside, and at least this share are support vectors.
"""

# %%
# Two clouds of ordinary rows, and new rows everywhere.
import matplotlib.pyplot as plt
import numpy as np

from saddlesvm import OneClassSVM

random = np.random.default_rng(0)
ordinary = np.vstack(
    [random.normal((-2, -1), 0.5, (150, 2)), random.normal((1.5, 1), 0.7, (150, 2))]
)
strangers = random.uniform(-5, 5, (40, 2))
x, y = np.meshgrid(np.linspace(-5, 5, 150), np.linspace(-5, 5, 150))

# %%
# The smaller ``nu``, the more the surface takes in. Each model is proven to be within ``tol`` of the best one.
figure, axes = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained", sharey=True)
for ax, nu in zip(axes, (0.3, 0.1, 0.02), strict=True):
    model = OneClassSVM(nu=nu, gamma=0.3).fit(ordinary)
    outside = np.mean(model.predict(ordinary) == -1)
    found = np.mean(model.predict(strangers) == -1)
    print(
        f"nu = {nu}: {outside:.1%} of the ordinary rows outside,",
        f"{found:.1%} of the strangers; {model.outcome_}",
    )
    surface = model.decision_function(np.column_stack([x.ravel(), y.ravel()])).reshape(
        x.shape
    )
    ax.contourf(x, y, surface, levels=[0.0, surface.max()], colors=["C0"], alpha=0.2)
    ax.contour(x, y, surface, levels=[0.0], colors=["C0"])
    ax.plot(*ordinary.T, ".", color="C0", label="ordinary")
    ax.plot(*strangers.T, "x", color="C1", label="strangers")
    ax.set(title=f"nu = {nu}", xlabel="first feature")
axes[0].set_ylabel("second feature")
axes[0].legend(loc="upper left")
