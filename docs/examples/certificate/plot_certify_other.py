"""
Certify somebody else's model
=============================

Weak duality holds for any model. ``certify`` bounds the distance of a linear model from the optimum of its problem,
whatever tool trained the model, and shows the cost of an early stop or a sampled training set.
"""

# %%
# Five models of the same problem, by scikit-learn's solvers at their defaults and after a few passes.
import warnings

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC as Liblinear

from saddlesvm import LinearSVC, certify

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)
C = 1.0
lam = 1.0 / len(y)

warnings.simplefilter(
    "ignore"
)  # LIBLINEAR and SGD say that they have not converged; how much it matters, we compute
models = {
    "LinearSVC": (Liblinear(C=C, loss="hinge", random_state=0), "hinge", True),
    "LinearSVC, 10 passes": (
        Liblinear(C=C, loss="hinge", max_iter=10, random_state=0),
        "hinge",
        True,
    ),
    "SGDClassifier": (SGDClassifier(alpha=lam, random_state=0), "hinge", False),
    "SGDClassifier, averaged": (
        SGDClassifier(alpha=lam, average=True, random_state=0),
        "hinge",
        False,
    ),
    "LogisticRegression": (LogisticRegression(C=C), "logistic", False),
}

# %%
# ``penalized_intercept`` says which problem the model solved: LIBLINEAR penalises its intercept, the others do not.
# ``refine`` spends some epochs on a better bound, and leaves the model unchanged.
excess = {}
for name, (model, loss, penalized) in models.items():
    model.fit(X, y)
    found = certify(
        X,
        y,
        model.coef_,
        model.intercept_,
        loss=loss,
        C=C,
        penalized_intercept=penalized,
        refine=2000,
    )
    excess[name] = found.excess
    print(f"{name:24s} at most {100 * found.excess:9.4f} % above its optimum")

ours = LinearSVC(loss="hinge", C=C, tol=1e-6, random_state=0).fit(X, y)
excess["saddlesvm.LinearSVC"] = ours.certificate_.excess

# %%
import matplotlib.pyplot as plt

figure, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
ax.barh(list(excess), np.maximum(list(excess.values()), 1e-9))
ax.set(xscale="log", xlabel="at most this far above the optimum, as a share of it")
ax.invert_yaxis()
