"""
Draw the gap of a fit, and a path
=================================

pandas draws the gap during a fit. A certified path has the proven gap of every C, and its errors.
"""

# %%
# A fit, and how its gap closed. Every point is a proof.
import matplotlib.pyplot as plt
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from saddlesvm import LinearSVC

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X = StandardScaler().set_output(transform="pandas").fit_transform(X)

model = LinearSVC(loss="hinge", solver="sdca", tol=1e-5, random_state=0).fit(X, y)
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
pd.DataFrame(model.trace_).plot("epoch", "relative_gap", loglog=True, ax=ax)

# %%
# A model whose C was chosen: the path behind it. The gap is proven for every C; the error is estimated by
# leave-one-out.
chosen = LinearSVC(C="auto", loss="squared_hinge", random_state=0).fit(X, y)
print(f"C = {chosen.C_:.3g}, {chosen.outcome_}")
path, choice = chosen.path_, chosen.choice_
Cs = path.grid()
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.loglog(Cs, [path.certificate(C).relative_gap for C in Cs], label="proven")
left.loglog(path.Cs, path.fit_gaps, "s", label="fits")
left.set(xlabel="C", ylabel="relative gap")
left.legend()
right.semilogx(choice.Cs, choice.errors, label="leave-one-out (estimated)")
right.axvline(choice.C, linestyle=":", label="chosen")
right.set(xlabel="C", ylabel="error")
right.legend()
