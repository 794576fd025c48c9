"""Durations and times with nanosecond precision, and their notations."""
