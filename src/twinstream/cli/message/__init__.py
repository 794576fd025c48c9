"""`twinstream pub`, `consume` and `get`."""
