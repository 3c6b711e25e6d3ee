"""
Quantile regression, and outliers
=================================

The pinball loss fits a quantile: with ``tau=0.9``, a tenth of the targets lie above the line. Two quantiles make a
band that shows the uncertainty of a prediction. The Huber loss fits the mean and is robust against outliers.
"""

# %%
# The spread grows with x, which a fit of the mean does not show.
import matplotlib.pyplot as plt
import numpy as np

from saddlesvm import LinearSVR

random = np.random.default_rng(0)
x = random.uniform(0, 3, 600)
y = 1.0 + 0.8 * x + random.normal(scale=0.15 + 0.35 * x)
X = x[:, None]
line = np.linspace(0, 3, 50)[:, None]

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.plot(x, y, ".", color="C7", alpha=0.4)
for tau in (0.1, 0.5, 0.9):
    model = LinearSVR(
        loss=f"pinball:tau={tau}", C=10.0, intercept="free", tol=1e-6, random_state=0
    ).fit(X, y)
    print(
        f"tau = {tau}: {np.mean(y < model.predict(X)):.3f} of the targets below;",
        model.outcome_,
    )
    ax.plot(line, model.predict(line), label=f"quantile {tau}")
ax.set(xlabel="x", ylabel="target")
ax.legend()

# %%
# One target in fifteen is an outlier. ``delta`` is the size of an error from which it counts in proportion, not
# squared.
wrong = random.random(600) < 1 / 15
y[wrong] += random.uniform(8, 15, wrong.sum()) * (x[wrong] > 1.5)
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.plot(x, y, ".", color="C7", alpha=0.4)
for loss in ("squared", "huber:delta=0.5", "absolute"):
    model = LinearSVR(loss=loss, C=10.0, intercept="free", random_state=0).fit(X, y)
    ax.plot(line, model.predict(line), label=f"{loss}: slope {model.coef_[0]:.2f}")
ax.plot(line, 1.0 + 0.8 * line, ":", color="k", label="truth: slope 0.80")
ax.set(xlabel="x", ylabel="target")
ax.legend(loc="upper left")
