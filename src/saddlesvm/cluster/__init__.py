"""Training over partitions of the rows, which may be on many machines."""
