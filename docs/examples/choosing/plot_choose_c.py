"""
Choosing C
==========

C is the only number that a linear support vector machine needs. A path over C takes little more time than a few fits,
because each fit begins at the solution of its neighbour. Every fit is certified, so no point of the curve comes from
a solver that stopped too early.
"""

# %%
# Thirteen values of C, from a thousandth to a thousand, each proven.
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from saddlesvm import LinearSVC
from saddlesvm.data import load_bundled

heart = load_bundled("heart")
X_train, X_test, y_train, y_test = train_test_split(
    heart.X, heart.y, test_size=0.4, random_state=0, stratify=heart.y
)
scaler = StandardScaler().fit(X_train)
X_train = scaler.transform(X_train)
X_test = scaler.transform(X_test)

path = LinearSVC.path(X_train, y_train, Cs=13, loss="hinge", tol=1e-4, random_state=0)
for C, certificate, seconds in zip(
    path.Cs, path.certificates, path.seconds, strict=True
):
    print(
        f"C = {C:10.4g}   gap {certificate.relative_gap:.1e}   {1000 * seconds:6.1f} ms"
    )

# %%
# Which one? ``LinearSVCCV`` goes along the path in every fold. The best mean is often no better than its neighbours by
# more than the noise: ``rule="one_standard_error"`` takes the smallest C that is as good within one standard error.
from saddlesvm import LinearSVCCV

machine = LinearSVC(loss="hinge", random_state=0)
best = LinearSVCCV(machine, cv=10).fit(X_train, y_train)
careful = LinearSVCCV(machine, cv=10, rule="one_standard_error").fit(X_train, y_train)
print(
    f"best: C = {best.C_:g},",
    f"test accuracy {best.best_estimator_.score(X_test, y_test):.3f}",
)
print(
    f"one standard error: C = {careful.C_:g},",
    f"test accuracy {careful.best_estimator_.score(X_test, y_test):.3f}",
)

# %%
import matplotlib.pyplot as plt

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.semilogx(path.Cs, path.coefs[:, 0, :])
left.set(xlabel="C", ylabel="weights", title="the path")
right.fill_between(
    best.Cs_,
    best.mean_scores_ - best.standard_errors_,
    best.mean_scores_ + best.standard_errors_,
    alpha=0.2,
)
right.semilogx(best.Cs_, best.mean_scores_, "o-")
right.axvline(best.C_, linestyle="-", color="C1", label="best")
right.axvline(careful.C_, linestyle="--", color="C2", label="one standard error")
right.set(xlabel="C", ylabel="accuracy in ten folds", title="cross-validation")
right.legend(loc="lower right")
np.testing.assert_array_less([c.relative_gap for c in path.certificates], 1e-4)
