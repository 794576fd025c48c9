"""Values that errors carry in addition to their text."""
