"""
No C to choose
==============

``C="auto"`` estimates the leave-one-out error along C without training again, coarse to fine, and certifies the
model of the best C. (With more than 2,500 features it compares the errors of five folds instead.)
"""

# %%
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from saddlesvm import LinearSVC, leave_one_out

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(
    X, y, test_size=0.4, random_state=0, stratify=y
)
scaler = StandardScaler().fit(X_train)
X_train = scaler.transform(X_train)
X_test = scaler.transform(X_test)

model = LinearSVC(C="auto", loss="logistic", random_state=0).fit(X_train, y_train)
choice = model.choice_
print(
    f"C = {choice.C:.3g}, {model.outcome_},",
    f"test accuracy {model.score(X_test, y_test):.3f}",
)

# %%
# The estimate beside the truth: leave-one-out by training 60 times without a row, against the estimated scores.
fitted = LinearSVC(C=choice.C, loss="logistic", tol=1e-8, random_state=0).fit(
    X_train, y_train
)
estimate = leave_one_out(fitted, X_train, y_train)
rows = np.random.default_rng(0).choice(len(y_train), 60, replace=False)
exact = []
for row in rows:
    others = np.delete(np.arange(len(y_train)), row)
    alone = LinearSVC(C=choice.C, loss="logistic", tol=1e-8, random_state=0).fit(
        X_train[others], y_train[others]
    )
    exact.append(alone.decision_function(X_train[[row]])[0])
print(
    "largest error of an estimated score:",
    f"{np.abs(np.array(exact) - estimate.margins[rows]).max():.1e}",
)

# %%
import matplotlib.pyplot as plt

errors = np.array([one.error for one in choice.estimates])
spread = np.array([one.standard_error for one in choice.estimates])
held_out = [1 - choice.path.model(C).score(X_test, y_test) for C in choice.Cs]
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.fill_between(choice.Cs, errors - spread, errors + spread, alpha=0.2)
left.semilogx(choice.Cs, errors, "o-", label="estimated, leave-one-out")
left.semilogx(choice.Cs, held_out, "s--", label="on held-out rows")
left.axvline(choice.C, color="C7", linestyle=":", label="chosen")
left.set(xlabel="C", ylabel="share of errors")
left.legend()
right.plot(exact, estimate.margins[rows], ".")
right.axline((0, 0), slope=1, color="C7", linewidth=1)
right.set(xlabel="score of the row, trained without it", ylabel="the same, estimated")
