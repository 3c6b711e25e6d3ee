"""What is solved: losses, intercepts, the problem, and the certificate of a point."""
