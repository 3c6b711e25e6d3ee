"""Tables of numbers, categories and texts in ONNX: the inputs of a pipeline, and gaps in numbers.

skl2onnx converts the transformers, except a ``SimpleImputer`` with ``add_indicator``: its graph is
made here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from skl2onnx.common._container import ModelComponentContainer
    from skl2onnx.common._topology import Operator, Scope

    from saddlesvm.estimators.base import Estimator

# The locale for lower case: minimal systems have no other one with UTF-8.
LOCALE = "C.UTF-8"
# The versions of the operators of ONNX in the graph.
VERSIONS = {"IsNaN": 13, "Where": 9, "Cast": 9, "Gather": 11}
Inputs = list[tuple[str, Any]]
# The types of the inputs, by the kinds of columns that ONNX can express.
INPUT_TYPES = {"number": FloatTensorType, "category": StringTensorType, "text": StringTensorType}


def inputs_of(model: Estimator) -> Inputs | None:
    """Return an input for each column of a pipeline for tables; None for other models.

    Raises
    ------
    ValueError
        A column holds dates, lists or n-grams of characters, for which ONNX has no counterpart.
    """
    columns = _first_columns(model)
    if columns is None:
        return None
    # Only an encoder that was made here tells the kinds of its columns.
    kinds = kinds_in(columns)
    if kinds is None:
        return None
    types: Inputs = []
    for name, kind in kinds.items():
        if kind.name not in INPUT_TYPES:
            raise ValueError(
                f"column {name!r}: ONNX has no counterpart for the kind {kind.name!r}; "
                f"train without the column (--columns {name}=drop), or make numbers of it before"
            )
        types.append((name, INPUT_TYPES[kind.name]([None, 1])))
    # In the order of the columns of the training table.
    order = [name for name in columns.feature_names_in_ if name in kinds]
    return sorted(types, key=lambda pair: order.index(pair[0]))


def _first_columns(model: Estimator) -> ColumnTransformer | None:
    """Return the transformer of columns with which a pipeline begins, or None."""
    if isinstance(model, Pipeline) and isinstance(model.steps[0][1], ColumnTransformer):
        return model.steps[0][1]
    return None


def options_of_texts(model: Estimator) -> dict[int, dict[str, str]]:
    """Return the options of skl2onnx for the texts of a pipeline for tables."""
    columns = _first_columns(model)
    if columns is None:
        return {}
    fitted = columns.named_transformers_.values()
    texts = [transformer for transformer in fitted if isinstance(transformer, TfidfVectorizer)]
    return {id(transformer): {"locale": LOCALE} for transformer in texts}


def shape_imputer(operator: Operator) -> None:
    """Set the shape of filled numbers, and of the features that mark gaps."""
    imputer = operator.raw_operator
    if imputer.indicator_ is None:
        calculate_sklearn_imputer_output_shapes(operator)
        return
    given = operator.inputs[0].type
    width = imputer.statistics_.size + imputer.indicator_.features_.size
    operator.outputs[0].type = type(given)([given.shape[0], width])


def convert_imputer(scope: Scope, operator: Operator, container: ModelComponentContainer) -> None:
    """Write the graph of an imputer: gaps are filled, and features after the numbers mark them."""
    imputer = operator.raw_operator
    if imputer.indicator_ is None:
        convert_sklearn_imputer(scope, operator, container)
        return
    is_single = isinstance(operator.inputs[0].type, FloatTensorType)
    number = TensorProto.FLOAT if is_single else TensorProto.DOUBLE
    X = operator.inputs[0].full_name
    gaps = _add_node(scope, container, "IsNaN", [X])
    fills = _add_constant(scope, container, number, imputer.statistics_[None, :])
    parts = [_add_node(scope, container, "Where", [gaps, fills, X])]
    # Of the columns that had gaps in the training rows.
    if imputer.indicator_.features_.size:
        marks = _add_node(scope, container, "Cast", [gaps], to=number)
        places = _add_constant(scope, container, TensorProto.INT64, imputer.indicator_.features_)
        parts.append(_add_node(scope, container, "Gather", [marks, places], axis=1))
    name = scope.get_unique_operator_name("fill")
    container.add_node("Concat", parts, operator.outputs[0].full_name, axis=1, name=name)


def _add_node(
    scope: Scope,
    container: ModelComponentContainer,
    kind: str,
    inputs: list[str],
    **options: object,
) -> str:
    """Add a node, and return the name of its output."""
    output: str = scope.get_unique_variable_name(kind.lower())
    name = scope.get_unique_operator_name(kind)
    container.add_node(kind, inputs, output, op_version=VERSIONS[kind], name=name, **options)
    return output


def _add_constant(
    scope: Scope, container: ModelComponentContainer, kind: int, values: np.ndarray
) -> str:
    """Add an array, and return its name."""
    name: str = scope.get_unique_variable_name("constant")
    container.add_initializer(name, kind, list(values.shape), values.ravel().tolist())
    return name


update_registered_converter(
    SimpleImputer, "SklearnSimpleImputer", shape_imputer, convert_imputer, overwrite=True
)
