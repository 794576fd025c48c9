"""Partitioned consumer groups."""
