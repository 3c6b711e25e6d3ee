"""
Dask on one machine
===================

The rows stay in partitions: a round of Newton's method is a pass over them, and
sends the client sums of the size of the weights. Here the workers are threads of
this process. On a cluster, only the client changes:
``Client("tcp://scheduler:8786")``.
"""

# %%
import dask.array as da
import numpy as np
from distributed import Client

from saddlesvm import LinearSVC

client = Client(
    processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None
)

random = np.random.default_rng(0)
truth = random.normal(size=40)
X = random.normal(size=(20_000, 40))
y = np.where(X @ truth + random.normal(scale=4.0, size=20_000) > 0, "yes", "no")
rows = da.from_array(X, chunks=(5_000, 40))
labels = da.from_array(y, chunks=5_000)

# %%
# ``fit`` takes Dask arrays, DataFrames, or lists of delayed blocks.
model = LinearSVC(C=0.01, tol=1e-3, random_state=0).fit(rows, labels)
print(model.outcome_, "after", model.n_iter_, "rounds:", model.certificate_)

# %%
# Predictions for Dask arrays are Dask arrays, computed when they are asked for; the model takes rows in memory, too.
share = model.score(rows, labels)
print(f"{share:.3f} of the rows right; the same locally: {model.score(X, y):.3f}")

# %%
import matplotlib.pyplot as plt

figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
ax.semilogy(
    range(1, model.n_iter_ + 1),
    model.trace_.column("relative_gap"),
    "o-",
)
ax.axhline(1e-3, color="C7", linestyle=":")
ax.set(xlabel="rounds", ylabel="relative gap, proven")
client.close()
