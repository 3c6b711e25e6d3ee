"""
Your own loss
=============

A loss is one small class. After its registration, every solver, layout, estimator and certificate takes it, and its
methods are compiled. The example has expectiles: the squared loss with different weights for errors above and below.
"""

# %%
# Eight methods, each a line or two of arithmetic: the loss and its slope, the conjugate and the best step of the dual
# variable, the slopes there, the curvature, and the bounds. The names in the decorator say how smooth it is.
from typing import NamedTuple

from saddlesvm import LinearSVR, register_loss
from saddlesvm.losses import SHARE, select

INF = float("inf")


@register_loss(
    "expectile",
    task="regression",
    shape="cornered",
    parabolic=True,
    exponentials=False,
    options={"tau": SHARE},
)
class Expectile(NamedTuple):
    tau: float = 0.5

    def value(self, z, y):
        return select(z < y, self.tau, 1.0 - self.tau) * (z - y) ** 2

    def subgradient(self, z, y):
        return 2.0 * select(z < y, self.tau, 1.0 - self.tau) * (z - y)

    def conjugate(self, a, y, s):
        return a * a / (4.0 * s * select(a > 0.0, self.tau, 1.0 - self.tau)) - a * y

    def dual_step(self, a, z, y, q, s):
        t = q * a + y - z
        return t / (q + 1.0 / (2.0 * s * select(t > 0.0, self.tau, 1.0 - self.tau))) - a

    def slopes(self, a, z, y, s):
        slope = z - y + a / (2.0 * s * select(a > 0.0, self.tau, 1.0 - self.tau))
        return slope, slope

    def curvature(self, z, y):
        return 2.0 * select(z < y, self.tau, 1.0 - self.tau)

    def bounds(self, y, s):
        return -INF, INF

    def largest_curvature(self):
        return 2.0 * max(self.tau, 1.0 - self.tau)


# %%
# That is all. The loss is known by its name, with its option, and the fits are certified like any other. A mistake in
# the conjugate would show: the gap would be negative, and the fit end as ``failed``.
import matplotlib.pyplot as plt
import numpy as np

random = np.random.default_rng(0)
x = random.uniform(-1, 1, 500)
y = x + random.gamma(2.0, 0.4, 500)
line = np.array([[-1.0], [1.0]])

figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
ax.plot(x, y, ".", color="C7", alpha=0.4)
for tau in (0.1, 0.5, 0.9):
    model = LinearSVR(
        loss=f"expectile:tau={tau}", C=10.0, intercept="free", random_state=0
    ).fit(x[:, None], y)
    print(f"tau = {tau}: {model.outcome_}, {model.certificate_}")
    ax.plot(line, model.predict(line), label=f"expectile {tau}")
ax.legend()
