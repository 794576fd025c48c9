"""The key-value store."""
