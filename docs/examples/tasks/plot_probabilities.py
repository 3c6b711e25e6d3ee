"""
Probabilities
=============

The logistic loss gives probabilities directly. Other losses give scores, and scikit-learn's calibration turns scores
into probabilities by a few more fits.
"""

# %%
import matplotlib.pyplot as plt
from sklearn.calibration import CalibratedClassifierCV, CalibrationDisplay
from sklearn.datasets import make_classification
from sklearn.metrics import brier_score_loss
from sklearn.model_selection import train_test_split

from saddlesvm import LinearSVC

X, y = make_classification(
    12_000, 30, n_informative=6, class_sep=0.7, flip_y=0.05, random_state=1
)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)

models = {
    "logistic loss": LinearSVC(loss="logistic", intercept="free", random_state=0),
    "hinge, calibrated": CalibratedClassifierCV(
        LinearSVC(loss="hinge", random_state=0), cv=5, ensemble=False
    ),
    "smooth hinge, calibrated": CalibratedClassifierCV(
        LinearSVC(loss="smooth_hinge", random_state=0),
        method="isotonic",
        cv=5,
        ensemble=False,
    ),
}

# %%
# A model is calibrated if, of the rows to which it gives 70 %, 70 % are positive. The Brier score sums up how far off
# it is; lower is better.
figure, ax = plt.subplots(figsize=(5.5, 5), layout="constrained")
for name, model in models.items():
    chances = model.fit(X_train, y_train).predict_proba(X_test)[:, 1]
    print(f"{name:26s} Brier score {brier_score_loss(y_test, chances):.4f}")
    CalibrationDisplay.from_predictions(y_test, chances, n_bins=12, name=name, ax=ax)
ax.set(xlabel="probability that the model gives", ylabel="share of positive rows")
