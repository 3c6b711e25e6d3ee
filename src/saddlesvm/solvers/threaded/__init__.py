"""Dual coordinate descent by several threads on one problem."""
