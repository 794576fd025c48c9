"""The seam between the twins: tasks, locks, waiting, and the bytes of a connection."""
