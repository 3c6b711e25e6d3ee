"""Solvers of small problems, in NumPy: nothing has to be compiled before the first result."""
