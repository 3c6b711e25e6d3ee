"""
Data larger than memory
=======================

A store is a folder of plain arrays. It is written block by block. Training reads it block by block, within a memory
limit, and ends with the same certificate as in memory.
"""

# %%
# Write a store without ever holding all of it: here the blocks come from a generator, as they might from a database.
import tempfile
from pathlib import Path

import numpy as np

from saddlesvm import LinearSVC
from saddlesvm.data import Store, StoreWriter

folder = tempfile.TemporaryDirectory()
path = Path(folder.name, "rows.store")
random = np.random.default_rng(0)
truth = random.normal(size=64).astype(np.float32)
with StoreWriter(path, dtype=np.float32) as writer:
    for _ in range(40):
        X = random.normal(size=(5000, 64)).astype(np.float32)
        y = np.where(X @ truth + random.normal(scale=6.0, size=5000) > 0, 1, -1)
        writer.append(X, y)
store = Store(path)
print(store, store.shape, f"{store.n_bytes / 1e6:.0f} MB on disk")

# %%
# Train with 24 MB, less than half of the rows. ``trace_`` has a row for each certificate; in this mode certificates
# come with the reading and cost no pass of their own.
small = LinearSVC(
    loss="squared_hinge", C=0.01, tol=1e-4, memory="24M", random_state=0
).fit(store)
print(small.outcome_, small.certificate_)

# %%
# The same problem with all rows in memory ends at the same optimum: both are within their gaps of it.
whole = LinearSVC(loss="squared_hinge", C=0.01, tol=1e-4, random_state=0).fit(
    np.array(store.X), np.array(store.y)
)
print(f"objectives {small.certificate_.primal:.4f} and {whole.certificate_.primal:.4f}")
print(
    "predictions that differ:",
    f"{np.mean(small.predict(store.X) != whole.predict(store.X)):.5%}",
)

# %%
import matplotlib.pyplot as plt

figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
ax.semilogy(
    small.trace_.column("epoch"),
    small.trace_.column("relative_gap"),
    "o-",
    label="24 MB, block by block",
)
ax.semilogy(
    whole.trace_.column("epoch"),
    whole.trace_.column("relative_gap"),
    "s",
    label="all in memory",
)
ax.axhline(1e-4, color="C7", linestyle=":", label="asked for")
ax.set(xlabel="passes over the rows", ylabel="relative gap, proven")
ax.legend()
folder.cleanup()
