"""The object store."""
