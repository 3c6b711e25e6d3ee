"""Made tables of mixed columns, and their encodings written by hand with scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

Table = dict[str, Any]
FIRST = ("Anna", "Berta", "Carl", "Dora", "Emil", "Frida", "Georg", "Hans", "Ida", "Jonas")
LAST = ("Abel", "Braun", "Conrad", "Decker", "Engel", "Falk", "Graf", "Huber", "Imhof", "Jung", "Koch", "Lang")
GOOD = ("great", "lovely", "fast", "friendly", "clean", "excellent")
BAD = ("broken", "slow", "rude", "dirty", "late", "awful")
PLAIN = ("the", "room", "train", "service", "was", "staff", "very", "and", "a", "bit", "food", "price", "we", "came")


def frame_of(table: Table) -> pd.DataFrame:
    """A table as :func:`saddlesvm.table.read` gives it: gaps in columns of words are empty texts."""
    frame = pd.DataFrame(table)
    for name in table:
        if frame[name].dtype.kind not in "iuf":
            frame[name] = frame[name].astype(object).fillna("")
    return frame


def scaled(*columns: Any) -> np.ndarray:
    values = np.column_stack([np.asarray(one, dtype=np.float64) for one in columns])
    return StandardScaler().fit_transform(np.where(np.isnan(values), np.nanmean(values, axis=0), values))


def ones(*columns: Any) -> Any:
    cells = [[one or "" for one in row] for row in zip(*columns, strict=True)]
    return OneHotEncoder().fit_transform(np.array(cells, dtype=object))


def titanic_like(n: int) -> tuple[Table, np.ndarray]:
    """Passengers: an id, numbers with gaps, categories with gaps, names with titles, months, a constant."""
    random = np.random.default_rng(1)
    sex = random.choice(["female", "male"], n, p=[0.4, 0.6])
    title = np.where(sex == "male", "Mr.", random.choice(["Miss", "Mrs."], n))
    deck = random.choice(["A1", "B2", "C3", "D4", ""], n, p=[0.1, 0.1, 0.1, 0.1, 0.6])
    age, fare = random.normal(35, 12, n).round(1), random.gamma(2.0, 15.0, n).round(2)
    day = np.datetime64("1912-01-01") + random.integers(0, 360, n)
    score = 1.6 * (sex == "female") + 0.9 * (deck != "") + 0.02 * (fare - 30) - 0.03 * (age - 35) - 1.0
    y = np.where(score + random.logistic(size=n) > 0, "yes", "no")
    table: Table = {
        "ticket": [f"T-{k:05d}" for k in range(n)],
        "age": [None if gap else value for gap, value in zip(random.random(n) < 0.2, age.tolist(), strict=True)],
        "sex": sex.tolist(),
        "fare": fare.tolist(),
        "cabin": [one or None for one in deck.tolist()],
        "name": [f"{random.choice(LAST)}, {t} {random.choice(FIRST)} {random.choice(LAST)}" for t in title],
        "sailed": [f"{one:%b}" for one in day.tolist()],
        "ship": ["Titanic"] * n,
        "row": list(range(1, n + 1)),
    }
    return table, y


def titanic_by_hand(table: Table) -> Any:
    age = [np.nan if one is None else one for one in table["age"]]
    words = ones(table["sex"], table["cabin"], table["sailed"])
    names = TfidfVectorizer().fit_transform(table["name"])
    return sparse.hstack([scaled(age, table["fare"]), words, names], "csr")


titanic_like.by_hand = titanic_by_hand  # type: ignore[attr-defined]


def adult_like(n: int) -> tuple[Table, np.ndarray]:
    """People: numbers, categories of several sizes, "?" for what is missing."""
    random = np.random.default_rng(2)
    jobs = np.array([f"job {k}" for k in range(14)])
    job, place = random.integers(0, 14, n), random.integers(0, 40, n)
    age, hours, years = random.integers(17, 90, n), random.integers(10, 70, n), random.integers(1, 17, n)
    married = random.choice(["single", "married", "widowed"], n)
    score = (
        0.05 * (hours - 40) + 0.3 * (years - 10) + 0.03 * (age - 40) + 1.2 * (married == "married") + 0.2 * (job - 7)
    )
    table: Table = {
        "age": age.tolist(),
        "work": ["?" if gap else one for gap, one in zip(random.random(n) < 0.06, jobs[job].tolist(), strict=True)],
        "education": years.tolist(),
        "marital": married.tolist(),
        "country": [f"C{k}" for k in place.tolist()],
        "hours": hours.tolist(),
    }
    return table, np.where(score + 1.5 * random.logistic(size=n) > 0.5, ">50K", "<=50K")


def adult_by_hand(table: Table) -> Any:
    numbers = scaled(table["age"], table["education"], table["hours"])
    return sparse.hstack([numbers, ones(table["work"], table["marital"], table["country"])], "csr")


adult_like.by_hand = adult_by_hand  # type: ignore[attr-defined]


def notes(n: int) -> tuple[Table, np.ndarray]:
    """Reviews: a text, the hour that they were written at, and a number of stays."""
    random = np.random.default_rng(3)
    happy = random.random(n) < 0.5
    texts = []
    for one in happy:
        words = list(random.choice(PLAIN, 12))
        words += list(random.choice(GOOD if one else BAD, 2)) + list(random.choice(GOOD + BAD, 2))
        texts.append(" ".join(random.permutation(words)))
    hours = np.where(happy, random.integers(6, 20, n), random.integers(0, 24, n))
    table = {
        "text": texts,
        "hour": hours.tolist(),
        "stays": random.poisson(2, n).tolist(),
    }
    return table, np.where(happy, 1, 0)


def notes_by_hand(table: Table) -> Any:
    return sparse.hstack([scaled(table["hour"], table["stays"]), TfidfVectorizer().fit_transform(table["text"])], "csr")


notes.by_hand = notes_by_hand  # type: ignore[attr-defined]
