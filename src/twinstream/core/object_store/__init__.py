"""Object stores without I/O: names, configurations, metadata and chunks."""
