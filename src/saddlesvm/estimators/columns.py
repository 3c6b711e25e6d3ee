"""Encode tables of numbers, categories and texts by scikit-learn's transformers.

A ``ColumnTransformer`` has a transformer for each kind of column, named after it: ``number``,
``category``, ``text 0``. So the kinds can be read from a fitted transformer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from saddlesvm.data.errors import DataError, import_for_files
from saddlesvm.data.kinds import KINDS, choose_kinds

if TYPE_CHECKING:
    from types import ModuleType

    import pandas as pd

    from saddlesvm.estimators.base import Estimator

# Types beyond scikit-learn's that a file may name.
TRUSTED_TYPES = ["numpy.dtype"]


def encoder(
    frame: pd.DataFrame, columns: Mapping[str, str] | None = None, *, missing: str = "mean"
) -> ColumnTransformer:
    """Choose a transformer for each column of a table, by what it holds.

    Parameters
    ----------
    frame : DataFrame
        Features without the labels, as :func:`saddlesvm.table.read` returns them; the first 10,000
        rows determine the kind of each column.
    columns : mapping of str to str, optional
        Kinds of columns if the guess is wrong: ``number``, ``category``, ``text`` (words) or
        ``drop``.
    missing : {"mean", "median"}, default="mean"
        What fills gaps between numbers; a feature marks them.

    Returns
    -------
    ColumnTransformer
        Not fitted, for a pipeline. Numbers are filled and scaled, each category becomes a feature,
        texts become TF-IDF.

    Raises
    ------
    DataError
        No column is left to learn from, or a column holds dates, lists, or numbers as text.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.pipeline import make_pipeline
    >>> from saddlesvm import LinearSVC
    >>> from saddlesvm.table import encoder
    >>> people = pd.DataFrame(
    ...     {"age": [31, 45, None, 52], "city": ["Ulm", "Bonn", "Ulm", "Bonn"]}
    ... )
    >>> model = make_pipeline(encoder(people), LinearSVC(random_state=0))
    >>> model.fit(people, ["yes", "no", "yes", "no"]).predict(people[:1]).tolist()
    ['yes']
    """
    kinds = {name: choice.kind for name, choice in choose_kinds(frame, columns).items()}
    for name, kind in kinds.items():
        if kind == "number" and frame[name].dtype.kind not in "iufb":
            raise DataError(
                f"column {name!r} holds numbers as text: make numbers of it first "
                f"(pandas.to_numeric), or name its kind, columns={{{name!r}: 'category'}}"
            )
    return transformers_for(kinds, missing)


def transformers_for(kinds: Mapping[str, str], missing: str = "mean") -> ColumnTransformer:
    """Return the ``ColumnTransformer`` for columns of given kinds.

    Numbers and categories have a transformer for all their columns, each text has its own.
    """
    groups: dict[str, list[str]] = {}
    for name, kind in kinds.items():
        if kind != "drop":
            # A number makes the group of a text unique.
            group = f"text {len(groups)}" if kind == "text" else kind
            groups.setdefault(group, []).append(name)
    transformers: list[tuple[str, BaseEstimator, list[str] | str]] = []
    for group, names in groups.items():
        if group == "number":
            # A missing number becomes the mean or the median; a further column says where it was.
            imputer = SimpleImputer(strategy=missing, add_indicator=True, keep_empty_features=True)
            transformers.append((group, make_pipeline(imputer, StandardScaler()), names))
        elif group == "category":
            # A category that the training rows did not have is zero in all columns.
            transformers.append((group, OneHotEncoder(handle_unknown="ignore"), names))
        else:
            transformers.append((group, TfidfVectorizer(), names[0]))
    return ColumnTransformer(transformers, sparse_threshold=1.0)


def kinds_in(columns: ColumnTransformer) -> dict[str, str] | None:
    """Return the kinds of columns if :func:`transformers_for` made their transformer, else None."""
    kinds: dict[str, str] = {}
    for group, _, names in columns.transformers:
        kind = group.partition(" ")[0]
        if kind not in KINDS or not isinstance(names, (str, list)):
            return None
        listed = [names] if isinstance(names, str) else names
        kinds.update((str(name), kind) for name in listed)
    return kinds


def feature_names(columns: ColumnTransformer) -> list[str]:
    """Return names of features for people, such as ``age``, ``city=Paris`` and ``note: great``.

    Parameters
    ----------
    columns : ColumnTransformer
        A fitted :func:`encoder`.

    Returns
    -------
    list of str

    Examples
    --------
    >>> import pandas as pd
    >>> from saddlesvm.table import encoder, feature_names
    >>> people = pd.DataFrame({"age": [31, 45, 52], "city": ["Ulm", "Bonn", "Ulm"]})
    >>> feature_names(encoder(people).fit(people))
    ['age', 'city=Bonn', 'city=Ulm']
    """
    features: list[str] = []
    for group, fitted, names in columns.transformers_:
        if group == "remainder":
            continue
        if group == "number":
            features += names
            # A further feature marks the gaps of each column that has some.
            indicator = fitted[0].indicator_
            if indicator is not None:
                features += [f"{names[k]} is missing" for k in indicator.features_]
        elif group == "category":
            for name, categories in zip(names, fitted.categories_, strict=True):
                words = ["(missing)" if word == "" else word for word in categories]
                features += [f"{name}={word}" for word in words]
        else:
            features += [f"{names}: {word}" for word in fitted.get_feature_names_out()]
    return features


def columns_to_bytes(transformer: object) -> bytes:
    """Return a fitted transformer, or a pipeline of them, as bytes of skops, without pickle.

    Raises
    ------
    DataError
        skops is not installed, or :func:`columns_from_bytes` does not trust a type.
    """
    skops = import_skops()
    data: bytes = skops.dumps(transformer)
    # A model file loads trusted types only: refuse now what it could not load.
    unknown = sorted(set(skops.get_untrusted_types(data=data)) - set(TRUSTED_TYPES))
    if unknown:
        raise DataError(
            f"a step before the model holds {', '.join(unknown)}, which a model file cannot hold: "
            "save it with joblib or skops"
        )
    return data


def columns_from_bytes(data: bytes) -> ColumnTransformer:
    """Return the transformer that :func:`columns_to_bytes` wrote.

    Raises
    ------
    DataError
        skops is not installed.
    ValueError
        The bytes are damaged, or name a type that is neither scikit-learn's nor of this module.
    """
    skops = import_skops()
    try:
        transformer = skops.loads(data, trusted=TRUSTED_TYPES)
    except DataError:
        raise
    except Exception as error:
        # skops, zipfile, json and the types themselves may raise anything.
        reason = str(error).splitlines()[0] if str(error) else repr(error)
        raise ValueError(f"its columns cannot be read: {reason}") from None
    if not isinstance(transformer, BaseEstimator) or not hasattr(transformer, "transform"):
        raise ValueError(f"its columns are a {type(transformer).__name__}, not a transformer")
    return transformer


def import_skops() -> ModuleType:
    """Return ``skops.io``; raises DataError if it is not installed."""
    module: ModuleType = import_for_files("skops.io", "saving or loading a step before a model")
    return module


def step_before(model: Pipeline) -> BaseEstimator:
    """Return the transformer before the estimator of a pipeline, or a pipeline of several."""
    if len(model.steps) == 2:
        return model.steps[0][1]
    return model[:-1]


def prepend_step(before: object, model: Estimator) -> Pipeline | Estimator:
    """Return a pipeline of a transformer and a model; the model alone without a transformer."""
    if before is None:
        return model
    pipeline = make_pipeline(before, model)
    if hasattr(model, "notes_"):
        pipeline.notes_ = model.notes_
    return pipeline
