"""Export to ONNX: the public door to :mod:`saddlesvm.estimators.onnx`."""

from saddlesvm.estimators.onnx import *  # noqa: F403
from saddlesvm.estimators.onnx import __all__ as __all__
