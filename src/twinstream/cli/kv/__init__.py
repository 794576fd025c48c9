"""`twinstream kv`."""
