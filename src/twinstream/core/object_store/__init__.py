"""Object stores without I/O: names, configurations, descriptions and chunks."""
