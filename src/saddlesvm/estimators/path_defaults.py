"""The defaults of a path over C."""

ENDS = (1e-3, 1e3)  # smallest and largest C
GAP = 1e-2  # relative gap
GRID = 13  # values of C
