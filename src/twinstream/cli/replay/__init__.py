"""The `twinstream replay` command: a range of a stream into another server."""
