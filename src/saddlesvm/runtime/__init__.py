"""Tools for kernels and options: compilation, randomness, threads, interrupts, checks of values."""
