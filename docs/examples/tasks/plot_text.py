"""
Text: which library wrote this?
===============================

From raw text to a certified classifier and its most important words. The texts are the docstrings of three libraries
that are installed with this package, with their names removed; nothing is downloaded.
"""

# %%
# The texts: every public function and class of some modules, and where it comes from.
import importlib
import re

import numpy as np

MODULES = {
    "numpy": "linalg fft random ma",
    "scipy": "stats special optimize sparse signal linalg",
    "sklearn": "linear_model svm ensemble metrics preprocessing datasets "
    "model_selection decomposition cluster feature_extraction.text neighbors "
    "pipeline tree impute covariance manifold",
}
NAMES = re.compile(r"numpy|scipy|sklearn|scikit.learn|\bnp\b|\bsp\b|>>>")

texts: dict[str, str] = {}
for library, modules in MODULES.items():
    for part in modules.split():
        module = importlib.import_module(f"{library}.{part}")
        for name in dir(module):
            text = getattr(module, name).__doc__ if not name.startswith("_") else None
            if isinstance(text, str) and len(text) > 200:
                texts.setdefault(NAMES.sub(" ", text), library)
documents = list(texts)
labels = np.array(list(texts.values()))
for library, count in zip(*np.unique(labels, return_counts=True), strict=True):
    print(f"{library}: {count} texts")

# %%
# Words and pairs of words, weighted by how rare they are, in single precision: a sparse matrix of 32-bit values, which
# is trained on as it is. ``tol`` is the proof that is asked for, not a setting to find out by trial.
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from saddlesvm import LinearSVC

train, test, y_train, y_test = train_test_split(
    documents, labels, test_size=0.3, random_state=0, stratify=labels
)
words = TfidfVectorizer(
    ngram_range=(1, 2), min_df=3, sublinear_tf=True, dtype=np.float32
)
model = make_pipeline(
    words, LinearSVC(loss="hinge", C=1.0, tol=1e-4, random_state=0)
).fit(train, y_train)
machine = model[-1]
print(
    f"{len(words.vocabulary_):,} features;",
    f"test accuracy {model.score(test, y_test):.3f}",
)
print(machine.outcome_, machine.certificate_)

# %%
# The words with the strongest evidence for each library.
import matplotlib.pyplot as plt

vocabulary = words.get_feature_names_out()
figure, axes = plt.subplots(1, 3, figsize=(10, 4), layout="constrained")
for ax, library, weights in zip(axes, machine.classes_, machine.coef_, strict=True):
    best = np.argsort(weights)[-12:]
    ax.barh(vocabulary[best], weights[best])
    ax.set_title(library)
    ax.tick_params(axis="y", labelsize=8)
