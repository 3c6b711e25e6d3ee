"""Fitted models in files: saved and loaded, and exported to ONNX and LIBLINEAR."""
