"""
Time limits, and resuming later
===============================

A fit with a time limit reports the gap that it proved. The next fit can continue from its point, in the same process
(``warm_start``) or after a crash (``checkpoint``).
"""

# %%
import tempfile
import warnings
from pathlib import Path

from sklearn.datasets import make_classification

from saddlesvm import LinearSVC, NotCertifiedWarning

X, y = make_classification(
    20_000, 60, n_informative=20, class_sep=0.6, flip_y=0.2, random_state=0
)
options = {"loss": "hinge", "solver": "dcd", "C": 0.01, "tol": 1e-4, "random_state": 0}

# %%
# A limit: here epochs, so that this page says the same on every machine; ``max_time`` is in seconds. The warning names
# the gap and the likely cure.
model = LinearSVC(max_iter=5, warm_start=True, **options)
with warnings.catch_warnings(record=True) as heard:
    warnings.simplefilter("always", NotCertifiedWarning)
    model.fit(X, y)
print(model.outcome_, "-", heard[0].message)

# %%
# Continue, a few epochs at a time: each fit begins at the dual point of the last one.
gaps = [model.certificate_.relative_gap]
epochs = [5]
warnings.simplefilter("ignore", NotCertifiedWarning)
while str(model.outcome_) != "certified":
    model.fit(X, y)
    gaps.append(model.certificate_.relative_gap)
    epochs.append(epochs[-1] + model.n_iter_)
print(model.outcome_, f"after {epochs[-1]} epochs in all")

# %%
# A callback sees every certificate, and ends the fit by returning True. With ``checkpoint`` the last solution is
# in a file, and the same call goes on from it, whatever ended the first one.
folder = tempfile.TemporaryDirectory()
path = Path(folder.name, "run.ckpt")
stopped = LinearSVC(
    checkpoint=path,
    callbacks=[lambda record: record.epoch >= 2],
    **options | {"tol": 1e-6},
)
stopped.fit(X, y)
print(
    stopped.outcome_,
    f"{stopped.certificate_.relative_gap:.1e}",
    "checkpoint written:",
    path.exists(),
)
resumed = LinearSVC(checkpoint=path, **options | {"tol": 1e-6}).fit(X, y)
print(resumed.outcome_, f"{resumed.certificate_.relative_gap:.1e}")
folder.cleanup()

# %%
import matplotlib.pyplot as plt

figure, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
ax.semilogy(epochs, gaps, "o-")
ax.axhline(1e-4, color="C7", linestyle=":")
ax.set(xlabel="epochs in all", ylabel="relative gap, proven")
