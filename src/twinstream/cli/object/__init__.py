"""`twinstream object`."""
