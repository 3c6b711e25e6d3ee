"""What every kernel stands on: compilation, randomness, threads, interrupts, the values that options allow."""
