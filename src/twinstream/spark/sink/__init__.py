"""The sink: rows published exactly once or at least once."""
