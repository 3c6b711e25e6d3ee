"""
Linear probes on embeddings
===========================

How few labels are enough for a linear model on embeddings of a neural network? The certificate makes the comparison
fair: every probe is at its optimum, so the results differ by the features only, not by the quality of the training.
"""

# %%
# A small network learns the digits 0 to 4. Its hidden layer is then used to describe the digits 5 to 9, which it has
# never seen.
import warnings

import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

pixels, digits = load_digits(return_X_y=True)
pixels = (pixels / 16.0).astype(np.float32)
seen = digits < 5
network = MLPClassifier(hidden_layer_sizes=(256,), max_iter=60, random_state=0)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)
    network.fit(pixels[seen], digits[seen])


def embed(X: np.ndarray) -> np.ndarray:
    """The network's hidden layer, rows scaled to length one: float32 in and out."""
    hidden = np.maximum(X @ network.coefs_[0] + network.intercepts_[0], 0.0)
    return (hidden / np.linalg.norm(hidden, axis=1, keepdims=True)).astype(np.float32)


X = pixels[~seen]
y = digits[~seen]
embeddings = embed(X)
print(embeddings.shape, embeddings.dtype)

# %%
# Probes on raw pixels and on embeddings, with more and more labels. float32 rows are used in place, without a copy in
# double precision; C is chosen by cross-validation, each fit begun where its neighbour ended.
from sklearn.model_selection import StratifiedShuffleSplit

from saddlesvm import LinearSVC, LinearSVCCV

labelled = [25, 50, 100, 200, 400]
scores: dict[str, list[float]] = {"pixels": [], "embeddings": []}
gaps = []
for count in labelled:
    train, test = next(
        StratifiedShuffleSplit(
            1, train_size=count, test_size=400, random_state=1
        ).split(X, y)
    )
    for name, features in (("pixels", X), ("embeddings", embeddings)):
        probe = LinearSVCCV(
            LinearSVC(loss="squared_hinge", tol=1e-3, random_state=0),
            Cs=np.logspace(-2, 2, 5),
            cv=3,
        )
        probe.fit(features[train], y[train])
        scores[name].append(probe.best_estimator_.score(features[test], y[test]))
        gaps.append(probe.certificate_.relative_gap)
print(f"largest gap of all probes: {max(gaps):.1e}")

# %%
import matplotlib.pyplot as plt

figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for name, marker in (("pixels", "s--"), ("embeddings", "o-")):
    ax.semilogx(labelled, scores[name], marker, label=name)
ax.set(
    xlabel="labelled rows",
    ylabel="test accuracy",
    xticks=labelled,
    xticklabels=labelled,
)
ax.minorticks_off()
ax.grid(alpha=0.3)
ax.legend()
