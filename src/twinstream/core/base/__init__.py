"""Argument checks, timestamps and lazy imports, used everywhere."""
