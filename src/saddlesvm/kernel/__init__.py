"""Everything with a Mercer kernel: its functions and rows, the problem, its certificate, its
solvers and its fits.
"""
