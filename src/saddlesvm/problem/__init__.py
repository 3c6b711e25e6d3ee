"""The problem to solve: losses, penalties, intercepts, and the certificate of a point."""
