"""Tools of every kernel: compilation, randomness, threads, interrupts, and checks of option values."""
