"""The subcommands of `twinstream consumer`."""
