"""Consequences of a proven fit: where the exact optimum lies, and so which decisions, labels and weights are its."""
