"""`twinstream stream`."""
