"""The subcommands of `twinstream group`."""
