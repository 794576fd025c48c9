"""Base classes of errors, and the values that errors have in addition to their text."""
