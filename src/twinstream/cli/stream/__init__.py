"""The subcommands of `twinstream stream`."""
