"""
Prediction sets with MAPIE
==========================

A prediction set contains the right class with a chosen probability. `MAPIE <https://mapie.readthedocs.io>`_ makes such
sets for any classifier with ``predict_proba``, and intervals for any regressor.
"""

# %%
# Three classes that overlap; half of the rows train the model, a quarter set the threshold of the sets.
import numpy as np
from mapie.classification import SplitConformalClassifier
from mapie.regression import SplitConformalRegressor
from sklearn.datasets import make_blobs
from sklearn.model_selection import train_test_split

from saddlesvm import LinearSVC, LinearSVR

X, y = make_blobs(1200, centers=3, cluster_std=2.5, random_state=0)
X_train, X_rest, y_train, y_rest = train_test_split(
    X, y, train_size=0.5, random_state=0
)
X_set, X_test, y_set, y_test = train_test_split(
    X_rest, y_rest, test_size=0.5, random_state=0
)

model = LinearSVC(loss="logistic", multi_class="multinomial")
model.fit(X_train, y_train)
sets = SplitConformalClassifier(model, confidence_level=0.9, prefit=True)
_, inside = sets.conformalize(X_set, y_set).predict_set(X_test)
inside = inside[:, :, 0]

right = inside[np.arange(len(y_test)), y_test]
print(f"the set has the right class for {right.mean():.1%} of the test rows")
print("rows by the size of their set:", np.bincount(inside.sum(axis=1)))

# %%
# Intervals for targets, from the absolute errors of rows that the model has not seen.
target = X @ [1.0, -2.0] + np.random.default_rng(0).normal(size=len(X))
line = LinearSVR(loss="huber:delta=1.0", C=1.0).fit(X[:600], target[:600])
bands = SplitConformalRegressor(line, confidence_level=0.9, prefit=True)
_, ends = bands.conformalize(X[600:900], target[600:900]).predict_interval(X[900:])
low = ends[:, 0, 0]
high = ends[:, 1, 0]
covered = (low <= target[900:]) & (target[900:] <= high)
print(f"the interval has the target for {covered.mean():.1%} of the rows")
print(f"the mean width of the intervals is {np.mean(high - low):.2f}")
