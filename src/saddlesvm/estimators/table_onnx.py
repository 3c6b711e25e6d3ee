"""The graph of the encoder of a table, for skl2onnx."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import TensorProto
from skl2onnx import get_model_alias, update_registered_converter
from skl2onnx.algebra import onnx_ops
from skl2onnx.algebra.onnx_operator import OnnxSubEstimator
from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, StringTensorType
from sklearn.pipeline import Pipeline

from saddlesvm.estimators.table import TableEncoder, groups_of


def _by(name: str, backwards: bool = False) -> Callable[[Values, Any], Values]:
    """The method of :class:`Values` that is a node of two inputs, of which the other may be an array or a number."""

    def both(own: Values, other: Any) -> Values:
        given = np.array([float(other)]) if isinstance(other, (int, float)) else other
        return own.graph.op(name, *((given, own) if backwards else (own, given)))

    return both


class Values:
    """The values of a node of a graph, with the arithmetic of arrays."""

    def __init__(self, graph: Graph, node: Any) -> None:
        self.graph, self.node = graph, node

    __add__, __sub__, __mul__, __truediv__, __matmul__ = map(_by, ("Add", "Sub", "Mul", "Div", "MatMul"))
    __rsub__ = _by("Sub", backwards=True)

    def __floordiv__(self, other: Any) -> Values:
        return self.graph.op("Floor", self / other)

    def __mod__(self, other: Any) -> Values:
        return self - self // other * other

    def __gt__(self, other: Any) -> Values:
        return _by("Greater")(self, other)

    def as_float64(self) -> Values:
        """The values as float64."""
        return self.graph.op("Cast", self, to=TensorProto.DOUBLE)

    def part(self, axis: int, start: int, stop: int) -> Values:
        """The values from `start` to before `stop` along an axis."""
        return self.graph.op("Slice", self, *(np.array([one], dtype=np.int64) for one in (start, stop, axis)))

    def sums(self) -> Values:
        """The sum of each row, shape (n, 1)."""
        return self.graph.op("ReduceSum", self, np.array([1], dtype=np.int64), keepdims=1)


class Graph:
    """The nodes of one model: float64 values in, float64 values out."""

    def __init__(self, version: int, source: Any) -> None:
        self.version, self.source = version, source

    def op(self, name: str, *inputs: Any, **attributes: Any) -> Values:
        """A node; arrays among its inputs become constants."""
        given = (one.node if isinstance(one, Values) else one for one in inputs)
        return Values(self, getattr(onnx_ops, f"Onnx{name}")(*given, op_version=self.version, **attributes))

    def in_float64(self, values: Any) -> Values:
        """The values as float64."""
        return Values(self, values.node if isinstance(values, Values) else values).as_float64()

    def categories(self, column: Any, found: np.ndarray) -> Any:
        """A feature for each category of a column of texts; zeros for others."""
        ones = onnx_ops.OnnxOneHotEncoder(column, cats_strings=found.tolist(), zeros=1, op_version=1)
        return self.op("Reshape", ones, np.array([-1, len(found)], dtype=np.int64)).as_float64()

    def submodel(self, model: Any, X: Any) -> Any:
        """The output of another model, by skl2onnx."""
        return OnnxSubEstimator(model, X, op_version=self.version, options={"locale": LOCALE})


LOCALE = "C.UTF-8"  # in which texts become lower case: minimal systems have no other with UTF-8
Inputs = list[tuple[str, Any]]


def inputs_of(model: Any) -> Inputs | None:
    """The inputs of a pipeline that begins with the encoder of a table, a column each; None for other models."""
    encoder = model.steps[0][1] if isinstance(model, Pipeline) else None
    if not isinstance(encoder, TableEncoder):
        return None
    names: list[str] = list(encoder.columns)
    types: dict[str, Any] = {}
    for group in groups_of(encoder.columns):
        width = group.cell_width(encoder.named_transformers_[group.name])
        kind = StringTensorType([None, 1]) if width is None else DoubleTensorType([None, width])
        types.update((names[place], kind) for place in group.places)
    return [(name, types[name]) for name in encoder.used]


def read_encoder(scope: Any, model: Any, inputs: list[Any], custom_parsers: Any = None) -> Any:
    """Declare an encoder and its output."""
    operator = scope.declare_local_operator(get_model_alias(type(model)), model)
    operator.inputs = inputs
    operator.outputs.append(scope.declare_local_variable("features", FloatTensorType()))
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
    for group in groups_of(encoder.columns):
        columns = [given[names[place]] for place in group.places]
        parts += group.exported(graph, encoder.named_transformers_[group.name], columns)
    features = graph.op("Concat", *parts, axis=1)
    last = graph.op("Cast", features, to=TensorProto.FLOAT, output_names=[operator.outputs[0].full_name])
    last.node.add_to(scope, container)


update_registered_converter(
    TableEncoder, "SaddlesvmTableEncoder", shape_encoder, convert_encoder, parser=read_encoder, overwrite=True
)
