"""Export to ONNX: the public names of :mod:`saddlesvm.models.onnx_graph`."""

try:
    from saddlesvm.models.onnx_graph import *  # noqa: F403
    from saddlesvm.models.onnx_graph import __all__ as __all__
except ModuleNotFoundError as error:
    from saddlesvm.runtime.extras import how_to_install

    message = f"export to ONNX needs the package {error.name!r}: {how_to_install('onnx')}"
    raise ModuleNotFoundError(message, name=error.name) from error
