"""Several classes: their sub-problems, classes that share a reading, joint starts."""
