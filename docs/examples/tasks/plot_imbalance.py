"""
Imbalanced classes and thresholds
=================================

Three rows in a hundred are positive. A plain fit finds few of them. Class weights, or another threshold on the same
scores, find more of them, and more false positives. This example compares them.
"""

# %%
import numpy as np
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

X, y = make_classification(
    8000,
    30,
    n_informative=8,
    weights=[0.97],
    class_sep=1.2,
    flip_y=0.005,
    random_state=3,
)
X_train, X_test, y_train, y_test = train_test_split(
    X, y, test_size=0.5, stratify=y, random_state=0
)
print(f"{y_train.sum()} positive rows of {y_train.size}")

# %%
# Three models. ``class_weight="balanced"`` weighs rows of a class by how rare it is; a dict says the factors, which are
# the cost of an error in each class. ``TunedThresholdClassifierCV`` leaves the model alone and moves the threshold.
from sklearn.metrics import f1_score, precision_score, recall_score
from sklearn.model_selection import TunedThresholdClassifierCV

from saddlesvm import LinearSVC

options = {"C": 0.1, "intercept": "free", "random_state": 0}
models = {
    "plain": LinearSVC(**options),
    "balanced": LinearSVC(class_weight="balanced", **options),
    "errors cost 5 : 1": LinearSVC(class_weight={0: 1.0, 1: 5.0}, **options),
    "tuned threshold": TunedThresholdClassifierCV(
        LinearSVC(**options), scoring="f1", response_method="decision_function", cv=5
    ),
}
print(f"{'':18s} precision  recall   f1")
for name, model in models.items():
    guess = model.fit(X_train, y_train).predict(X_test)
    found = [
        score(y_test, guess) for score in (precision_score, recall_score, f1_score)
    ]
    print(f"{name:18s} {found[0]:9.2f} {found[1]:7.2f} {found[2]:4.2f}")

# %%
# The curves are nearly the same: weights mostly move the threshold. The right point of the curve depends on the cost of
# a missed row in your application.
import matplotlib.pyplot as plt
from sklearn.metrics import precision_recall_curve

figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for name, model in models.items():
    fitted = getattr(model, "estimator_", model)
    precision, recall, _ = precision_recall_curve(
        y_test, fitted.decision_function(X_test)
    )
    guess = model.predict(X_test)
    if name != "tuned threshold":
        ax.plot(recall, precision, alpha=0.6)
    ax.plot(
        recall_score(y_test, guess),
        precision_score(y_test, guess),
        "o",
        markersize=9,
        label=name,
    )
ax.set(xlabel="recall", ylabel="precision", xlim=(0, 1), ylim=(0, 1.02))
ax.legend(loc="lower left")
assert np.isfinite(precision).all()
