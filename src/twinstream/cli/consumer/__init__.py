"""`twinstream consumer`."""
