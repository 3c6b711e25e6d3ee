"""
Streams: learning as rows arrive
================================

``partial_fit`` learns from one batch of rows after the other, and does not keep them. It needs the online solver,
Pegasos. The certificate is about the rows of the last call.
"""

# %%
# A stream of batches, tested before it learns from each ("prequential" accuracy).
import numpy as np

from saddlesvm import LinearSVC

random = np.random.default_rng(0)
truth = random.normal(size=20)


def batch(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of length one, labelled by a noisy plane."""
    X = random.normal(size=(rows, 20))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, np.where(X @ truth + random.normal(scale=0.3, size=rows) > 0, 1, 0)


# %%
# The first call fixes lambda, so give it as ``lam``: ``C`` would depend on the size of the first batch. ``classes``
# names all labels of the stream.
stream = LinearSVC(solver="pegasos", lam=1e-3, loss="hinge", random_state=0)
accuracies = []
for number in range(60):
    X, y = batch(200)
    if number:
        accuracies.append(stream.score(X, y))
    stream.partial_fit(X, y, classes=[0, 1])
print(f"accuracy of the last ten batches: {np.mean(accuracies[-10:]):.3f}")

# %%
# For comparison, a certified fit to as many rows at once.
X, y = batch(12_000)
whole = LinearSVC(lam=1e-3, loss="hinge", random_state=0).fit(X, y)
X_new, y_new = batch(5_000)
print(
    f"all rows at once: {whole.score(X_new, y_new):.3f};",
    f"the stream: {stream.score(X_new, y_new):.3f}",
)

# %%
import matplotlib.pyplot as plt

figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
smooth = np.convolve(accuracies, np.ones(5) / 5, mode="valid")
ax.plot(
    np.arange(1, 60) * 200,
    accuracies,
    ".",
    alpha=0.4,
    label="each batch, before learning from it",
)
ax.plot(np.arange(3, 58) * 200, smooth, label="mean of five")
ax.axhline(
    whole.score(X_new, y_new),
    color="C7",
    linestyle=":",
    label="fitted to all rows at once",
)
ax.set(xlabel="rows seen", ylabel="accuracy")
ax.legend(loc="lower right")
