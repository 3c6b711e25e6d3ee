"""
Choosing C
==========

C is the only number that a linear support vector machine needs. Thirteen values of C take little more time than a few
fits, because with ``warm_start`` each fit begins at the solution of its neighbour. Every fit is certified, so no point
of the curve comes from a solver that stopped too early.
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

model = LinearSVC(loss="hinge", warm_start=True, random_state=0)
Cs = np.logspace(-3, 3, 13).tolist()
weights = []
for C in Cs:
    model.set_params(C=C).fit(X_train, y_train)
    weights.append(model.coef_[0].copy())
    gap = model.certificate_.relative_gap
    print(f"C = {C:10.4g}   gap {gap:.1e}   {1000 * model.seconds_solving_:6.1f} ms")

# %%
# Which one? ``LinearSVCCV`` goes along C in every fold. The best mean is often no better than its neighbours by
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
left.semilogx(Cs, weights)
left.set(xlabel="C", ylabel="weights", title="weights along C")
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
plt.show()
