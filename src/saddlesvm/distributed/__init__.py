"""Training over partitions of the rows that need not be on one machine: the rounds, and engines that run them."""
