"""Several classes: their sub-problems, classes that share one reading of the rows, and joint starts."""
