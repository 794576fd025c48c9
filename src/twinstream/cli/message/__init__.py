"""The commands `twinstream pub`, `consume` and `get`."""
