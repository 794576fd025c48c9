"""Compare a folder of configurations with a server, and apply the differences."""
