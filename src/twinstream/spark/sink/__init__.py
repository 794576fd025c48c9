"""The `jetstream` sink: publish rows exactly once or at least once."""
