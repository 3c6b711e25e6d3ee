"""What a path over C is by default."""

ENDS = (1e-3, 1e3)  # smallest and largest C
GAP = 1e-2  # relative gap
GRID = 13  # values of C
