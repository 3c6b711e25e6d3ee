"""
Sparse weights: l1 and the elastic net
======================================

With ``penalty="l1"`` or ``penalty="elasticnet"``, weights become exactly zero, and the model uses few features. The
certificate has the same meaning: a bound on the distance from the optimum.
"""

# %%
# Two hundred features, of which ten matter.
import numpy as np
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

from saddlesvm import LinearSVC

X, y = make_classification(
    1500,
    200,
    n_informative=10,
    n_redundant=0,
    n_clusters_per_class=1,
    class_sep=0.5,
    flip_y=0.05,
    shuffle=False,
    random_state=0,
)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)

# %%
# ``"l1"`` charges the sum of the absolute weights; ``l1_ratio`` shares the penalty of the elastic net between that and
# the sum of the squares; ``C`` weighs the errors against both.
Cs = np.logspace(-3.5, -0.5, 13)
found = {}
for name, options in {
    "squared norm": {},
    "elastic net, l1_ratio 0.5": {"penalty": "elasticnet", "l1_ratio": 0.5},
    "l1": {"penalty": "l1"},
}.items():
    models = [
        LinearSVC(C=C, loss="squared_hinge", tol=1e-4, random_state=0, **options).fit(
            X_train, y_train
        )
        for C in Cs
    ]
    assert max(model.certificate_.relative_gap for model in models) <= 1e-4
    found[name] = [
        (np.count_nonzero(model.coef_), model.score(X_test, y_test)) for model in models
    ]
    best = max(found[name], key=lambda pair: pair[1])
    print(
        f"{name:27s} best test accuracy {best[1]:.3f}",
        f"with {best[0]} of {X.shape[1]} features",
    )

# %%
import matplotlib.pyplot as plt

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for name, pairs in found.items():
    used, accuracy = zip(*pairs, strict=True)
    left.semilogx(Cs, used, "o-", label=name)
    right.semilogx(Cs, accuracy, "o-", label=name)
left.axhline(10, color="C7", linestyle=":", label="features that matter")
left.set(xlabel="C", ylabel="features used")
right.set(xlabel="C", ylabel="test accuracy")
left.legend()

# %%
# Weights appear at :func:`saddlesvm.svm.C_max`, the largest C at which no feature has a weight. With ``warm_start``,
# each fit begins where the last one ended.
from saddlesvm.svm import C_max

model = LinearSVC(penalty="l1", warm_start=True, random_state=0)
Cs = C_max(model, X_train, y_train) * np.logspace(0, 3, 15)
weights = [
    model.set_params(C=C).fit(X_train, y_train).coef_[0].copy() for C in Cs.tolist()
]
print(
    f"from {np.count_nonzero(weights[0])} features to {np.count_nonzero(weights[-1])}"
)
figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
ax.semilogx(Cs, weights)
ax.set(xlabel="C", ylabel="weight")
plt.show()
