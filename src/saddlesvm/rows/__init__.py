"""Where rows are and how they are read: dense, sparse, in memory, mapped or in blocks of files, through a kernel."""
