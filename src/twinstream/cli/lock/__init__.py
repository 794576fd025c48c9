"""`twinstream lock`."""
