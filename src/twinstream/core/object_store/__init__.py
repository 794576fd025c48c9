"""The object store: names, configurations and chunks, without I/O."""
