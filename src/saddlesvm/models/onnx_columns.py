"""Tables of numbers, categories and texts in ONNX: the inputs of a pipeline, and the gaps between numbers.

skl2onnx converts the transformers. It has no ``SimpleImputer`` with ``add_indicator``, so its graph is here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto
from skl2onnx import update_registered_converter
from skl2onnx.common.data_types import FloatTensorType, StringTensorType
from skl2onnx.operator_converters.imputer_op import convert_sklearn_imputer
from skl2onnx.shape_calculators.imputer import calculate_sklearn_imputer_output_shapes
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline

from saddlesvm.estimators.columns import kinds_in

LOCALE = "C.UTF-8"  # in which texts become lower case: minimal systems have no other with UTF-8
Inputs = list[tuple[str, Any]]


def inputs_of(model: Any) -> Inputs | None:
    """The inputs of a pipeline that begins with the transformers of a table, one for each column; None for others.

    Raises
    ------
    ValueError
        A column holds dates, lists or n-grams of characters, which ONNX has no counterpart for.
    """
    columns = model.steps[0][1] if isinstance(model, Pipeline) else None
    kinds = kinds_in(columns) if isinstance(columns, ColumnTransformer) else None
    if columns is None or kinds is None:
        return None
    types: Inputs = []
    for name, kind in kinds.items():
        if kind.name not in ("number", "category", "text"):
            raise ValueError(
                f"column {name!r}: ONNX has no counterpart for the kind {kind.name!r}; train without the column "
                f"(--columns {name}=drop), or make numbers of it before"
            )
        types.append((name, FloatTensorType([None, 1]) if kind.name == "number" else StringTensorType([None, 1])))
    order = [name for name in columns.feature_names_in_ if name in kinds]
    return sorted(types, key=lambda pair: order.index(pair[0]))


def options_of_texts(model: Any) -> dict[int, dict[str, str]]:
    """The options of skl2onnx for the texts of a pipeline of a table."""
    columns = model.steps[0][1] if isinstance(model, Pipeline) else None
    fitted = columns.named_transformers_.values() if isinstance(columns, ColumnTransformer) else ()
    return {id(one): {"locale": LOCALE} for one in fitted if isinstance(one, TfidfVectorizer)}


def shape_imputer(operator: Any) -> None:
    """The shape of filled numbers, and of the features that mark gaps."""
    imputer = operator.raw_operator
    if imputer.indicator_ is None:
        calculate_sklearn_imputer_output_shapes(operator)
        return
    given = operator.inputs[0].type
    width = imputer.statistics_.size + imputer.indicator_.features_.size
    operator.outputs[0].type = type(given)([given.shape[0], width])


def convert_imputer(scope: Any, operator: Any, container: Any) -> None:
    """The graph of an imputer: gaps are filled, and features after the numbers mark them."""
    imputer = operator.raw_operator
    if imputer.indicator_ is None:
        convert_sklearn_imputer(scope, operator, container)
        return
    single = isinstance(operator.inputs[0].type, FloatTensorType)
    number = TensorProto.FLOAT if single else TensorProto.DOUBLE
    X = operator.inputs[0].full_name
    gaps = _node(scope, container, "IsNaN", [X])
    fills = _constant(scope, container, number, imputer.statistics_[None, :])
    parts = [_node(scope, container, "Where", [gaps, fills, X])]
    if imputer.indicator_.features_.size:
        marks = _node(scope, container, "Cast", [gaps], to=number)
        places = _constant(scope, container, TensorProto.INT64, imputer.indicator_.features_)
        parts.append(_node(scope, container, "Gather", [marks, places], axis=1))
    container.add_node(
        "Concat", parts, operator.outputs[0].full_name, axis=1, name=scope.get_unique_operator_name("fill")
    )


def _node(scope: Any, container: Any, kind: str, inputs: list[str], **options: Any) -> str:
    """Add a node; the name of its output."""
    made: str = scope.get_unique_variable_name(kind.lower())
    version = {"IsNaN": 13, "Where": 9, "Cast": 9, "Gather": 11}[kind]
    container.add_node(kind, inputs, made, op_version=version, name=scope.get_unique_operator_name(kind), **options)
    return made


def _constant(scope: Any, container: Any, kind: int, values: np.ndarray) -> str:
    """Add an array; its name."""
    name: str = scope.get_unique_variable_name("constant")
    container.add_initializer(name, kind, list(values.shape), values.ravel().tolist())
    return name


update_registered_converter(SimpleImputer, "SklearnSimpleImputer", shape_imputer, convert_imputer, overwrite=True)
