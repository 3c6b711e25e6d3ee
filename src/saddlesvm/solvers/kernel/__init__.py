"""Solvers for problems with a Mercer kernel."""
