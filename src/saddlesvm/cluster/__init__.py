"""Training over partitions of the rows that need not be on one machine: a partition's work, rounds, and engines."""
