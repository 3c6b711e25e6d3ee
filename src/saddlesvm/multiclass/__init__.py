"""Several classes: their sub-problems, and the fits of lists of problems."""
