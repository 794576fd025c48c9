"""The subcommands of `twinstream kv`."""
