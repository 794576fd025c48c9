"""`twinstream schedule`."""
