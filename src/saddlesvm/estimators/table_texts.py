"""Columns of texts: TF-IDF of words or of characters, and hashed words."""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar

import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.pipeline import make_pipeline

from saddlesvm.data.column_kinds import Kind
from saddlesvm.data.errors import DataError
from saddlesvm.estimators.table_columns import Columns, State, needs, texts

HASHED = 1 << 18  # features of hashed texts


class Texts(Columns):
    """The common part of texts: each is a column by itself."""

    alone = sparse = True
    analyzer = "word"

    @property
    def ngrams(self) -> dict[str, Any]:
        """What is counted, as scikit-learn's vectorizers take it."""
        return {"analyzer": self.analyzer, "ngram_range": (self.kind.low, self.kind.high)}


class Words(Texts):
    """TF-IDF of words; a part of a table counts in how many rows each occurs."""

    counts_words = True
    restored: ClassVar[State] = {"vocabulary": None}

    def __init__(self, name: str, kind: Kind, places: list[int]) -> None:
        super().__init__(name, kind, places)
        self.counts: Counter[str] = Counter()

    def transformer(self) -> Any:
        """TF-IDF."""
        return TfidfVectorizer(**self.ngrams)

    def features(self, fitted: Any, names: list[str]) -> list[str]:
        """``note: great``."""
        return [f"{names[0]}: {one}" for one in fitted.get_feature_names_out()]

    def learn(self, columns: list[np.ndarray]) -> None:
        """Count the words of some rows; the rarest are forgotten where the memory does not hold all."""
        words = self.transformer().build_analyzer()
        for text in columns[0].tolist():
            self.counts.update(set(words(text)))
            while len(self.counts) > self.most:
                least = min(self.counts.values())
                self.counts = Counter({word: count for word, count in self.counts.items() if count > least})

    def learnt(self, n: int) -> tuple[State, np.ndarray]:
        """The vocabulary."""
        if not self.counts:
            raise DataError("a text column holds no words; say --columns NAME=drop or NAME=category")
        words = sorted(self.counts)
        return {"words": words}, _idf(np.array([self.counts[word] for word in words], dtype=np.float64), n)

    def state(self, fitted: Any) -> tuple[State, np.ndarray]:
        """The vocabulary."""
        return {"words": sorted(fitted.vocabulary_, key=fitted.vocabulary_.__getitem__)}, fitted.idf_

    def sample(self, state: State) -> tuple[Any, Any]:
        """Empty texts."""
        vocabulary = {word: k for k, word in enumerate(texts(state.get("words"), self.name))}
        return self.transformer().set_params(vocabulary=vocabulary), np.full((2, 1), "", dtype=object)

    def put(self, fitted: Any, state: State, idf: np.ndarray) -> np.ndarray:
        """The frequencies of the words."""
        count = len(fitted.vocabulary_)
        needs(count <= idf.size, self.name)
        fitted.idf_ = idf[:count]
        return idf[count:]

    def exported(self, graph: Any, fitted: Any, columns: list[Any]) -> list[Any]:
        """TF-IDF."""
        return [graph.in_float64(graph.submodel(fitted, columns[0]))]


class Characters(Words):
    """TF-IDF of the n-grams of characters within words."""

    analyzer = "char_wb"
    in_onnx = False


class Hashes(Texts):
    """TF-IDF of hashed words, which needs no vocabulary."""

    in_onnx = False

    def __init__(self, name: str, kind: Kind, places: list[int]) -> None:
        super().__init__(name, kind, places)
        self.counts = np.zeros(HASHED)

    def transformer(self) -> Any:
        """Hashes and their TF-IDF."""
        hashing = HashingVectorizer(n_features=HASHED, norm=None, alternate_sign=False, **self.ngrams)
        return make_pipeline(hashing, TfidfTransformer())

    def features(self, fitted: Any, names: list[str]) -> list[str]:
        """``note: hash 7``."""
        return [f"{names[0]}: hash {k}" for k in range(fitted[0].n_features)]

    def learn(self, columns: list[np.ndarray]) -> None:
        """Count in how many of some rows each hash occurs."""
        self.counts += np.bincount(self.transformer()[0].transform(columns[0]).indices, minlength=HASHED)

    def learnt(self, n: int) -> tuple[State, np.ndarray]:
        """The frequencies."""
        return {}, _idf(self.counts, n)

    def state(self, fitted: Any) -> tuple[State, np.ndarray]:
        """The frequencies."""
        return {}, fitted[-1].idf_

    def sample(self, state: State) -> tuple[Any, Any]:
        """Empty texts."""
        return self.transformer(), np.full((2, 1), "", dtype=object)

    def put(self, fitted: Any, state: State, idf: np.ndarray) -> np.ndarray:
        """The frequencies."""
        needs(idf.size >= HASHED, self.name)
        fitted[-1].idf_ = idf[:HASHED]
        return idf[HASHED:]


def _idf(counts: np.ndarray, n: int) -> np.ndarray:
    """Inverse document frequencies, as scikit-learn has them."""
    return np.asarray(np.log((1.0 + n) / (1.0 + counts)) + 1.0)
