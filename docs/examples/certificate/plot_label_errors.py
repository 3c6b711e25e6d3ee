"""
Find wrong labels with cleanlab
===============================

`cleanlab <https://docs.cleanlab.ai>`_ finds labels that are probably wrong. It asks for probabilities of each row from
a model that was not trained on that row. ``leave_one_out`` gives such scores without training again.
"""

# %%
# Breast cancer data with ten labels flipped.
import numpy as np
from cleanlab.rank import get_label_quality_scores
from scipy.special import expit
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from saddlesvm import LinearSVC, leave_one_out

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)
flipped = np.random.default_rng(0).choice(len(y), size=10, replace=False)
y[flipped] = 1 - y[flipped]

model = LinearSVC(loss="logistic", C=0.1, random_state=0).fit(X, y)
scores = leave_one_out(model, X, y).margins

# %%
# The logistic loss models the probability of class 1 as the logistic function of the score.
of_class_1 = expit(scores)
quality = get_label_quality_scores(y, np.column_stack([1 - of_class_1, of_class_1]))
worst = np.argsort(quality)[:10]
print(f"{np.isin(worst, flipped).sum()} of the ten worst labels were flipped")
