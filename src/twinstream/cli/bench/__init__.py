"""The subcommands of `twinstream bench`."""
