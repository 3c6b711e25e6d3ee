"""What every kernel uses: compilation, randomness, threads, interrupts, and checks of option values."""
