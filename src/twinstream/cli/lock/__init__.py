"""The subcommands of `twinstream lock`."""
