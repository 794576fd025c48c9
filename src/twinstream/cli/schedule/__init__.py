"""The subcommands of `twinstream schedule`."""
