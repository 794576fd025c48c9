"""The subcommands of `twinstream object`."""
