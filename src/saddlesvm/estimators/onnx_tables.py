"""Encoders of tables in ONNX models: an input a column, and the arithmetic of its kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from skl2onnx import get_model_alias, update_registered_converter
from skl2onnx.algebra.onnx_operator import OnnxSubEstimator
from skl2onnx.common.data_types import DoubleTensorType, StringTensorType
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline

from saddlesvm.data.column_kinds import kind_of
from saddlesvm.estimators.onnx_graph import Graph, onnx_ops
from saddlesvm.estimators.table import TableEncoder
from saddlesvm.estimators.table_parts import A_MOMENT, HOURS, MONTHS, WEEKDAYS, members_of

__all__ = ["inputs_of", "with_frame"]

LOCALE = "C.UTF-8"  # in which texts become lower case: minimal systems have no other with UTF-8
Inputs = list[tuple[str, Any]]


def inputs_of(model: Any) -> Inputs | None:
    """The inputs of a pipeline that begins with the encoder of a table, a column each; None for other models."""
    encoder = model.steps[0][1] if isinstance(model, Pipeline) else None
    if not isinstance(encoder, TableEncoder):
        return None
    return [(name, _type_of(encoder, name)) for name in encoder.used]


def _type_of(encoder: TableEncoder, name: str) -> Any:
    kind = kind_of(encoder.columns[name], name).name
    if kind in ("category", "text"):
        return StringTensorType([None, 1])
    if kind == "list":
        return DoubleTensorType([None, encoder.named_transformers_[f"list {name}"].width_])
    if kind in ("chars", "hashed"):
        raise ValueError(f"column {name!r}: ONNX has no counterpart for the kind {kind!r}; text has one")
    return DoubleTensorType([None, 1])


def with_frame(model: Any, X: Any) -> bool:
    """Whether the columns of a data frame are inputs of their own: where a ``ColumnTransformer`` distinguishes them."""
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    return hasattr(X, "columns") and any(isinstance(step, ColumnTransformer) for step in steps)


def read_encoder(scope: Any, model: Any, inputs: list[Any], custom_parsers: Any = None) -> Any:
    """Declare an encoder and its output."""
    operator = scope.declare_local_operator(get_model_alias(type(model)), model)
    operator.inputs = inputs
    operator.outputs.append(scope.declare_local_variable("features", DoubleTensorType()))
    return operator.outputs


def shape_encoder(operator: Any) -> None:
    """The shape of the features."""
    width = len(operator.raw_operator.get_feature_names_out())
    operator.outputs[0].type.shape = [operator.inputs[0].get_first_dimension(), width]


def convert_encoder(scope: Any, operator: Any, container: Any) -> None:
    """The graph of an encoder."""
    encoder: TableEncoder = operator.raw_operator
    given = dict(zip(encoder.used, operator.inputs, strict=True))
    graph, names = Graph(container.target_opset, None), list(encoder.columns)
    parts = []
    for member in members_of(encoder.columns):
        columns = [given[names[place]] for place in member.places]
        parts += PARTS[member.kind.name](graph, encoder.named_transformers_[member.name], columns)
    last = onnx_ops.OnnxConcat(
        *parts, axis=1, op_version=container.target_opset, output_names=[operator.outputs[0].full_name]
    )
    last.add_to(scope, container)


def numbers(graph: Graph, transformer: Any, columns: list[Any]) -> list[Any]:
    """Gaps filled in, with features that say where, and all scaled."""
    imputer, scaler = transformer
    X = graph.op("Concat", *(graph.in_float64(one) for one in columns), axis=1)
    missing = graph.op("IsNaN", X)
    parts = [graph.op("Where", missing, imputer.statistics_[None, :], X)]
    if imputer.indicator_ is not None and imputer.indicator_.features_.size:
        gaps = imputer.indicator_.features_.astype(np.int64)
        parts.append(graph.op("Gather", graph.in_float64(missing), gaps, axis=1))
    both = graph.op("Concat", *parts, axis=1)
    return [graph.op("Div", graph.op("Sub", both, scaler.mean_[None, :]), scaler.scale_[None, :])]


def categories(graph: Graph, transformer: Any, columns: list[Any]) -> list[Any]:
    """A feature for each category; zeros for one that the fit did not see."""
    made = []
    for column, found in zip(columns, transformer.categories_, strict=True):
        ones = onnx_ops.OnnxOneHotEncoder(column, cats_strings=found.tolist(), zeros=1, op_version=1)
        made.append(graph.in_float64(graph.op("Reshape", ones, np.array([-1, len(found)], dtype=np.int64))))
    return made


def words(graph: Graph, transformer: Any, columns: list[Any]) -> list[Any]:
    """TF-IDF, by skl2onnx."""
    found = OnnxSubEstimator(transformer, columns[0], op_version=graph.version, options={"locale": LOCALE})
    return [graph.in_float64(found)]


def lists(graph: Graph, transformer: Any, columns: list[Any]) -> list[Any]:
    """The numbers as they are."""
    return [graph.in_float64(columns[0])]


def dates(graph: Graph, transformer: Any, columns: list[Any]) -> list[Any]:
    """As :class:`~saddlesvm.estimators.table_parts.DateParts`, from days since 1970."""
    made = []
    for k, column in enumerate(columns):
        given = graph.in_float64(column)
        missing = graph.op("IsNaN", given)
        known = graph.in_float64(graph.op("Not", missing))
        days = graph.op("Where", missing, np.array([[0.0]]), given)
        since = graph.op(
            "Sub", graph.op("Where", missing, transformer.centre_[None, [k]], given), transformer.centre_[None, [k]]
        )
        made.append(graph.op("Div", since, transformer.spread_[None, [k]]))
        whole = graph.op("Floor", days)
        weekday = _rest(graph, graph.op("Add", whole, np.array([[3.0]])), float(WEEKDAYS))
        made += [_one_hot(graph, month_of(graph, whole), MONTHS, known), _one_hot(graph, weekday, WEEKDAYS, known)]
        if transformer.timed_[k]:
            hours = graph.op("Mul", graph.op("Sub", days, whole), np.array([[float(HOURS)]]))
            hour = graph.op("Floor", graph.op("Add", hours, np.array([[A_MOMENT]])))
            made.append(_one_hot(graph, hour, HOURS, known))
    return made


def _one_hot(graph: Graph, place: Any, count: int, known: Any) -> Any:
    same = graph.op("Equal", graph.op("Round", place), np.arange(count, dtype=np.float64)[None, :])
    return graph.op("Mul", graph.in_float64(same), known)


def _parts(graph: Graph, value: Any, size: float) -> Any:
    """The quotients of whole numbers and a size."""
    return graph.op("Floor", graph.op("Div", value, np.array([[size]])))


def _rest(graph: Graph, value: Any, size: float) -> Any:
    return graph.op("Sub", value, graph.op("Mul", _parts(graph, value, size), np.array([[size]])))


def month_of(graph: Graph, day: Any) -> Any:
    """The month, from 0, of days since 1970-01-01: arithmetic of years that begin in March, in eras of 400 years.

    The method of H. Hinnant, "chrono-compatible low-level date algorithms" (2021).
    """

    def plus(value: Any, number: float) -> Any:
        return graph.op("Add", value, np.array([[number]]))

    in_era = _rest(graph, plus(day, 719_468.0), 146_097.0)
    leaps = graph.op("Sub", _parts(graph, in_era, 36_524.0), _parts(graph, in_era, 1_460.0))
    years = graph.op("Sub", graph.op("Add", in_era, leaps), _parts(graph, in_era, 146_096.0))
    year = _parts(graph, years, 365.0)
    begun = graph.op("Add", graph.op("Mul", year, np.array([[365.0]])), _parts(graph, year, 4.0))
    of_year = graph.op("Sub", in_era, graph.op("Sub", begun, _parts(graph, year, 100.0)))
    from_march = _parts(graph, plus(graph.op("Mul", of_year, np.array([[5.0]])), 2.0), 153.0)
    return _rest(graph, plus(from_march, 2.0), float(MONTHS))


PARTS: dict[str, Callable[[Graph, Any, list[Any]], list[Any]]] = {
    "number": numbers,
    "category": categories,
    "date": dates,
    "text": words,
    "list": lists,
}
update_registered_converter(
    TableEncoder, "SaddlesvmTableEncoder", shape_encoder, convert_encoder, parser=read_encoder, overwrite=True
)
