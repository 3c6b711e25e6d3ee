"""Encoders of tables as plain numbers and words: what model files hold, and what passes over large files learn.

A state is a dict that JSON holds, with the kinds of the columns and, for each group of columns, what its transformer
has learnt. An encoder is made of it by scikit-learn's own constructors and a fit to two made-up rows, after which the
learnt numbers are put in. Nothing of a file is executed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.validation import check_is_fitted

from saddlesvm.data.errors import DataError
from saddlesvm.estimators.table import ANALYZERS, HASHED, Member, TableEncoder, made_for, members_of, transformers_for

__all__ = ["IDF", "encoder_of", "state_of", "taken_state"]

IDF = "encoder_idf"  # the array of a model file with the inverse document frequencies of all texts, one after the other
State = dict[str, Any]


def state_of(encoder: TableEncoder) -> tuple[State, np.ndarray]:
    """The learnt state of a fitted encoder: a state, and the inverse document frequencies of its texts.

    Raises
    ------
    DataError
        A transformer is not as :func:`saddlesvm.table.encoder` makes them.
    """
    check_is_fitted(encoder)
    members, idf = [], [np.empty(0)]
    for member in members_of(encoder.columns):
        fitted, fresh = encoder.named_transformers_.get(member.name), made_for(member.kind)
        if repr(fitted) != repr(fresh) and not _from_state(fitted, fresh):
            raise DataError(
                f"the transformer {member.name!r} of the table's encoder is {fitted!r}; only those that "
                "saddlesvm.table.encoder makes can be saved"
            )
        members.append(TAKEN[member.kind.name](fitted))
        if member.kind.name in ANALYZERS:
            idf.append(fitted.idf_ if isinstance(fitted, TfidfVectorizer) else fitted[-1].idf_)
    return {"columns": dict(encoder.columns), "members": members}, np.concatenate(idf)


def _from_state(fitted: Any, fresh: Any) -> bool:
    """Whether a transformer differs from a fresh one in nothing but what :func:`encoder_of` gave it."""
    if type(fitted) is not type(fresh) or not isinstance(fitted, (OneHotEncoder, TfidfVectorizer)):
        return False
    given = {"categories": "auto"} if isinstance(fitted, OneHotEncoder) else {"vocabulary": None}
    return repr(type(fitted)(**{**fitted.get_params(), **given})) == repr(fresh)


def _words(fitted: Any) -> State:
    return {"words": sorted(fitted.vocabulary_, key=fitted.vocabulary_.__getitem__)}


def _numbers(fitted: Any) -> State:
    imputer, scaler = fitted
    gaps = [] if imputer.indicator_ is None else imputer.indicator_.features_.tolist()
    kept = {name: getattr(scaler, f"{name}_").tolist() for name in ("mean", "var", "scale")}
    return {"filled": imputer.statistics_.tolist(), "gaps": gaps, "seen": int(np.max(scaler.n_samples_seen_)), **kept}


TAKEN: dict[str, Callable[[Any], State]] = {
    "number": _numbers,
    "category": lambda one: {"categories": [found.tolist() for found in one.categories_]},
    "date": lambda one: {
        "centre": one.centre_.tolist(), "spread": one.spread_.tolist(), "timed": one.timed_.tolist()
    },
    "list": lambda one: {"width": one.width_},
    "text": _words,
    "chars": _words,
    "hashed": lambda one: {},
}  # fmt: skip


def taken_state(arrays: dict[str, np.ndarray], meta: dict[str, Any]) -> tuple[State, np.ndarray] | None:
    """The state of an encoder among the contents of a model file, which is taken out; None where there is none."""
    state, idf = meta.pop("encoder", None), arrays.pop(IDF, None)
    return None if state is None else (state, np.empty(0) if idf is None else idf)


def encoder_of(state: Any, idf: np.ndarray) -> TableEncoder:
    """The fitted encoder of a state.

    Raises
    ------
    ValueError
        It is no state of an encoder.
    """
    columns = state.get("columns") if isinstance(state, dict) else None
    fine = isinstance(columns, dict) and all(isinstance(one, str) for item in columns.items() for one in item)
    _needs(fine and isinstance(state.get("members"), list), "the columns")
    assert isinstance(columns, dict)
    members = members_of(columns)
    _needs(len(members) == len(state["members"]) > 0 and idf.ndim == 1 and idf.dtype == np.float64, "the groups")
    _needs(bool(np.isfinite(idf).all() and (idf > 0.0).all()), "the frequencies of words")
    given, made, sample = {}, [], np.zeros((2, len(columns)), dtype=object)
    for member, one in zip(members, state["members"], strict=True):
        _needs(isinstance(one, dict), member.name)
        transformer, rows = MADE[member.kind.name](member, one)
        sample[:, member.places] = rows
        made.append((member.name, transformer, member.places[0] if member.alone else member.places))
        given[member.name] = one
    encoder = TableEncoder(made, columns)
    ColumnTransformer.fit_transform(encoder, sample)
    place = 0
    for member in members:
        fitted = encoder.named_transformers_[member.name]
        count = 0
        if member.kind.name in ANALYZERS:
            count = HASHED if member.kind.name == "hashed" else len(fitted.vocabulary_)
            _needs(place + count <= idf.size, member.name)
        PUT[member.kind.name](fitted, given[member.name], idf[place : place + count])
        place += count
    _needs(place == idf.size, "the frequencies of words")
    encoder.sparse_output_ = any(one.kind.name in ("category", *ANALYZERS) for one in members)
    return encoder.set_params(transformers=transformers_for(columns))


def _needs(fine: bool, what: str) -> None:
    if not fine:
        raise ValueError(f"its encoder of a table does not hold {what} as this package writes them")


def _finite(given: Any, count: int, what: str) -> np.ndarray:
    """Numbers of a state as an array."""
    fine = isinstance(given, list) and len(given) == count
    _needs(fine and all(type(one) in (int, float) and math.isfinite(one) for one in given), what)
    return np.array(given, dtype=np.float64)


def _texts(given: Any, what: str) -> list[str]:
    _needs(isinstance(given, list) and all(isinstance(one, str) for one in given), what)
    _needs(len(set(given)) == len(given) > 0, what)
    return list(given)


def _made_numbers(member: Member, state: State) -> tuple[Any, np.ndarray]:
    rows = np.zeros((2, len(member.places)))
    gaps = state.get("gaps")
    _needs(isinstance(gaps, list) and all(type(one) is int and 0 <= one < rows.shape[1] for one in gaps), member.name)
    assert isinstance(gaps, list)
    _needs(gaps == sorted(set(gaps)), member.name)
    rows[1, gaps] = np.nan
    return made_for(member.kind), rows


def _put_numbers(fitted: Any, state: State, idf: np.ndarray) -> None:
    imputer, scaler = fitted
    wide = len(imputer.statistics_) + len(state["gaps"])
    imputer.statistics_ = _finite(state.get("filled"), len(imputer.statistics_), "number")
    scaler.mean_, scaler.var_, scaler.scale_ = (
        _finite(state.get(name), wide, "number") for name in ("mean", "var", "scale")
    )
    _needs(bool((scaler.scale_ > 0.0).all() and (scaler.var_ >= 0.0).all()), "number")
    _needs(type(state.get("seen")) is int and state["seen"] > 0, "number")
    scaler.n_samples_seen_ = state["seen"]


def _made_categories(member: Member, state: State) -> tuple[Any, np.ndarray]:
    found = state.get("categories")
    _needs(isinstance(found, list) and len(found) == len(member.places), member.name)
    assert isinstance(found, list)
    categories = [np.array(_texts(one, member.name), dtype=object) for one in found]
    encoder = made_for(member.kind).set_params(categories=categories)
    return encoder, np.array([[one[0] for one in categories]] * 2, dtype=object)


def _made_text(member: Member, state: State) -> tuple[Any, np.ndarray]:
    vocabulary = {word: k for k, word in enumerate(_texts(state.get("words"), member.name))}
    return made_for(member.kind).set_params(vocabulary=vocabulary), np.full((2, 1), "", dtype=object)


def _put_text(fitted: Any, state: State, idf: np.ndarray) -> None:
    fitted.idf_ = idf


def _put_hashed(fitted: Any, state: State, idf: np.ndarray) -> None:
    fitted[-1].idf_ = idf


def _made_dates(member: Member, state: State) -> tuple[Any, np.ndarray]:
    timed = state.get("timed")
    _needs(isinstance(timed, list) and len(timed) == len(member.places), member.name)
    assert isinstance(timed, list)
    _needs(all(isinstance(one, bool) for one in timed), member.name)
    return made_for(member.kind), np.array([[0.5 if one else 0.0 for one in timed]] * 2)


def _put_dates(fitted: Any, state: State, idf: np.ndarray) -> None:
    width = len(fitted.centre_)
    fitted.centre_, fitted.spread_ = (_finite(state.get(name), width, "date") for name in ("centre", "spread"))
    _needs(bool((fitted.spread_ > 0.0).all()), "date")


def _made_lists(member: Member, state: State) -> tuple[Any, np.ndarray]:
    width = state.get("width")
    _needs(type(width) is int and 0 < width <= 1 << 24, member.name)
    rows = np.empty((2, 1), dtype=object)
    rows[0, 0] = rows[1, 0] = np.zeros(width or 1)
    return made_for(member.kind), rows


def _put_nothing(fitted: Any, state: State, idf: np.ndarray) -> None:
    pass


Maker = Callable[[Member, State], tuple[Any, np.ndarray]]
MADE: dict[str, Maker] = {
    "number": _made_numbers,
    "category": _made_categories,
    "date": _made_dates,
    "list": _made_lists,
    "text": _made_text,
    "chars": _made_text,
    "hashed": lambda member, state: (made_for(member.kind), np.full((2, 1), "", dtype=object)),
}
PUT: dict[str, Callable[[Any, State, np.ndarray], None]] = {
    "number": _put_numbers,
    "category": _put_nothing,
    "date": _put_dates,
    "list": _put_nothing,
    "text": _put_text,
    "chars": _put_text,
    "hashed": _put_hashed,
}
