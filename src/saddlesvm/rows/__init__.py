"""Rows and passes over them: dense or sparse; in memory, mapped, or in blocks of files."""
