"""Where rows are kept and how they are read: dense or sparse; in memory, mapped, or in blocks of files; by a kernel."""
