"""The solver that chooses between the others by predicted costs."""
