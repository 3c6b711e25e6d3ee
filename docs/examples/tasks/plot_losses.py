"""
Which loss?
===========

This example draws the losses of the package, and shows their effect on a fit. For classes: the hinge gives few
support vectors, the squared hinge penalises large errors, and the logistic loss gives probabilities. For targets: the
absolute loss is robust against outliers.
"""

# %%
# The classification losses, as functions of the margin ``y (x . w + b)``, and the regression losses, as functions of
# the residual.
import matplotlib.pyplot as plt
import numpy as np

margins = np.linspace(-2, 2.5, 300)
residuals = np.linspace(-2, 2, 300)
classification = {
    "hinge": np.maximum(0, 1 - margins),
    "squared hinge": np.maximum(0, 1 - margins) ** 2,
    "smooth hinge, width 1": np.where(
        margins < 0, 0.5 - margins, np.maximum(0, 1 - margins) ** 2 / 2
    ),
    "logistic": np.log1p(np.exp(-margins)),
}
regression = {
    "absolute": np.abs(residuals),
    "squared": residuals**2,
    "epsilon-insensitive, 0.5": np.maximum(0, np.abs(residuals) - 0.5),
}
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
for name, values in classification.items():
    left.plot(margins, values, label=name)
for name, values in regression.items():
    right.plot(residuals, values, label=name)
left.set(xlabel="margin", ylabel="loss", ylim=(-0.1, 4))
right.set(xlabel="residual", ylim=(-0.1, 4))
left.legend()
right.legend()

# %%
# A line through points, a tenth of which are outliers.
from saddlesvm import LinearSVR

random = np.random.default_rng(0)
x = random.uniform(-1, 1, 200)
target = 2.0 * x + 0.5 + random.normal(scale=0.1, size=200)
wrong = random.random(200) < 0.1
target[wrong] = random.uniform(3, 6, wrong.sum())

figure, ax = plt.subplots(figsize=(6, 3.8), layout="constrained")
ax.plot(x, target, ".", color="C7", alpha=0.5)
for loss, line in (("squared", "--"), ("absolute", "-")):
    model = LinearSVR(loss=loss, C=10.0, intercept="free", random_state=0).fit(
        x[:, None], target
    )
    ax.plot(
        [-1, 1],
        model.predict(np.array([[-1.0], [1.0]])),
        line,
        label=f"{loss}: slope {model.coef_[0]:.2f}",
    )
    print(loss, model.outcome_, model.certificate_)
ax.plot([-1, 1], [-1.5, 2.5], ":", color="k", label="truth: slope 2.00")
ax.legend()
