"""
The gap closes
==============

The objective of the model falls, and a proven lower bound on the objective of *every* model rises. The fit stops when
the distance between the two, the gap, is small enough.
"""

# %%
# A fit that is asked for three digits. ``certificate_`` holds the objective (``primal``), the bound (``dual``), and the
# share of the objective that could still be gained at most (``relative_gap``).
from sklearn.preprocessing import StandardScaler

from saddlesvm import LinearSVC
from saddlesvm.data import load_bundled

notes = load_bundled("banknote")
X = StandardScaler().fit_transform(notes.X)
y = notes.y
model = LinearSVC(loss="hinge", C=0.1, tol=1e-3, random_state=0).fit(X, y)
print(model.outcome_)
print(model.certificate_)

# %%
# To watch it happen, the lab runs a solver with a certificate after every epoch. The optimum lies in the band between
# the two lines, at every moment, whatever it is.
import matplotlib.pyplot as plt

from saddlesvm.lab import compare

trace = compare(
    X, y, solvers="sdca", C=0.1, tol=1e-5, certify_every=1.0, name="banknote"
).trace
above = trace["primal"].cummin()
below = trace["dual"].cummax()

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
left.fill_between(trace["epoch"], below, above, alpha=0.2)
left.plot(trace["epoch"], above, label="objective of the model")
left.plot(trace["epoch"], below, label="proven lower bound")
left.set(xlabel="epochs", ylabel="objective", xlim=(1, 10))
left.legend()
right.semilogy(trace["epoch"], (above - below) / above)
right.set(xlabel="epochs", ylabel="relative gap")
right.grid(alpha=0.3)

# %%
# The bound holds for any model. A time limit that ends a fit early costs accuracy only: the certificate has the gap
# that was proven.
import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    early = LinearSVC(
        loss="hinge", C=0.1, solver="sdca", max_iter=2, random_state=0
    ).fit(X, y)
print(early.outcome_, "-", early.outcome_.advice)
print(f"at most {100 * early.certificate_.excess:.1f} % above the optimum")
