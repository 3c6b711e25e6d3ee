"""The column solver: coordinate descent over features, for penalties that set weights to zero."""
