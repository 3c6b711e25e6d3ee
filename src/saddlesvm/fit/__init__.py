"""One fit: the loop, its limits, what it found, why it ended, its trace and its checkpoint."""
