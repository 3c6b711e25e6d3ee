"""
What nu means
=============

``nu`` limits the share of errors, where ``C`` sets their cost: at most this share of the rows is inside the margin of
``NuSVC`` or outside the tube of ``NuSVR``, and at least this share are support vectors.
"""

# %%
# A curve with more noise on the right. The smaller ``nu``, the wider the tube: it grows until few rows are outside.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from saddlesvm import NuSVC, NuSVR

random = np.random.default_rng(0)
x = np.sort(random.uniform(0, 10, 150))
y = np.sin(x) + random.normal(0, 0.05 + 0.03 * x)
grid = np.linspace(0, 10, 300)[:, None]

figure, axes = plt.subplots(1, 3, figsize=(10, 3.4), layout="constrained", sharey=True)
for ax, nu in zip(axes, (0.8, 0.4, 0.1), strict=True):
    model = NuSVR(nu=nu, C=10.0, gamma=0.5).fit(x[:, None], y)
    errors = np.abs(y - model.predict(x[:, None]))
    width = np.sort(errors)[::-1][
        int(nu * len(y))
    ]  # the largest error but for a share nu
    centre = model.predict(grid)
    ax.fill_between(
        grid[:, 0], centre - width, centre + width, color="C0", alpha=0.2, label="tube"
    )
    ax.plot(grid[:, 0], centre, color="C0")
    ax.plot(x, y, ".", color="C7", label="rows")
    ax.plot(
        x[model.support_],
        y[model.support_],
        "o",
        mfc="none",
        color="C1",
        label="support vectors",
    )
    ax.set(
        title=f"nu = {nu}: {model.support_.size} of {len(y)} are support vectors",
        xlabel="x",
    )
    ax.title.set_fontsize(9)
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)

# %%
# Two classes: the share of rows inside the margin, and of support vectors, as ``nu`` grows. The first stays below the
# line, the second above it. A smaller ``nu`` than 0.2 leaves no margin here: the classes overlap.
X, labels = make_moons(400, noise=0.3, random_state=0)
nus = np.linspace(0.2, 0.9, 15)
inside = []
support = []
for nu in nus:
    model = NuSVC(nu=nu, gamma=1.0).fit(X, labels)
    margins = np.where(labels == 1, 1.0, -1.0) * model.decision_function(X)
    inside.append(np.mean(margins < 1.0 - 1e-3))
    support.append(model.support_.size / len(X))

figure, ax = plt.subplots(figsize=(5, 3.8), layout="constrained")
ax.plot(nus, support, "o-", color="C1", label="support vectors")
ax.plot(nus, nus, color="C7", linestyle=":", label="nu")
ax.plot(nus, inside, "s-", color="C0", label="rows inside the margin")
ax.set(xlabel="nu", ylabel="share of the rows")
ax.legend()
