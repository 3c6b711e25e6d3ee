"""
A table with words and gaps
===========================

From a data frame of mixed columns to a certified model, and to its most important categories and words.
"""

# %%
# A table of trips: numbers with gaps, categories, a short text, and a column that says nothing.
# The hour of a date is made a word in pandas.
import numpy as np
import pandas as pd

random = np.random.default_rng(0)
n = 1500
when = np.datetime64("2024-01-01T00:00") + random.integers(0, 366 * 24, n) * 60
hour = when.astype("datetime64[h]").astype(int) % 24
line = random.choice(["S1", "S2", "RE7", "RE9"], n)
rain = random.gamma(1.0, 2.0, n).round(1)
words = np.array(["signal fault at", "all quiet around", "works on the track near"])
report = [
    f"{words[k]} {random.choice(['Ulm', 'Bonn'])}" for k in random.integers(0, 3, n)
]
score = 1.5 * np.isin(hour, (7, 8, 17, 18)) + 0.3 * rain + 0.8 * (line == "RE9") - 1.5
score += 2.0 * np.char.startswith(report, "signal")
trips = pd.DataFrame(
    {
        "trip": [f"T{k}" for k in range(n)],
        "line": line,
        "rain": np.where(random.random(n) < 0.1, np.nan, rain),
        "hour": pd.Series(when).dt.hour.astype("category"),
        "report": report,
    }
)
late = np.where(score + random.logistic(size=n) > 0, "late", "on time")

# %%
# ``encoder`` chooses a transformer for each column; a mapping overrides its choice.
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from saddlesvm import LinearSVC
from saddlesvm.table import encoder, feature_names

made = encoder(trips)
print(made)

# %%
# The pipeline learns the encoding from the training rows alone.
train, test, y_train, y_test = train_test_split(trips, late, random_state=0)
model = make_pipeline(made, LinearSVC(loss="logistic", C=0.3, random_state=0))
model.fit(train, y_train)
print(f"test accuracy {model.score(test, y_test):.3f}; {model[-1].certificate_}")

# %%
# The features with the strongest evidence for a late train.
import matplotlib.pyplot as plt

best = model[-1].top_features(12, feature_names(model[0]))["late"][::-1]
figure, ax = plt.subplots(figsize=(6.5, 4.0), layout="constrained")
ax.barh([name for name, _ in best], [abs(weight) for _, weight in best])
ax.set_xlabel("weight for late")
plt.show()
