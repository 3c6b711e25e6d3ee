"""
Forget rows, and show that nothing is left of them
==================================================

A person asks for the erasure of their rows. ``forget`` removes the rows from a trained model. Equal digests prove
that a fit that never saw the rows has the same weights.
"""

# %%
# With ``canonical`` each weight of the exact optimum is rounded to 20 bits, proven. Two fits of the same rows then have
# the same bytes, and ``digest_`` is their hash.
import json

import matplotlib.pyplot as plt
import numpy as np

from saddlesvm import LinearSVC
from saddlesvm.data import load_bundled

notes = load_bundled("banknote")
model = LinearSVC(loss="logistic", canonical=20).fit(notes.X, notes.y)
whole = model.coef_[0].copy()
print(model.digest_)

# %%
# The rows 100 to 149 are to be forgotten.
gone = np.arange(100, 150)
model.forget(gone)
kept = np.setdiff1d(np.arange(len(notes.y)), gone)
never_seen = LinearSVC(loss="logistic", canonical=20).fit(notes.X[kept], notes.y[kept])
print(model.digest_ == never_seen.digest_)

# %%
# The log holds counts and hashes, and no data.
print(json.dumps(json.loads(model.log_[0]), indent=2))

# %%
# How far the weights moved, in steps of the grid:
step = 2.0 ** (np.frexp(np.abs(whole).max())[1] - 20)
fig, axes = plt.subplots(figsize=(5, 2.5), layout="constrained")
axes.bar(
    ["variance", "skewness", "curtosis", "entropy"],
    np.abs(model.coef_[0] - whole) / step,
)
axes.set(yscale="log", ylabel="steps of the grid", title="What 50 rows had changed")
plt.show()
