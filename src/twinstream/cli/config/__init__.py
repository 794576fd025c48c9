"""Commands that work on configuration files and need no server."""
