"""Consequences of a proven fit: bounds on the exact optimum, and on its scores and labels."""
