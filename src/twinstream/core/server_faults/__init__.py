"""Faults of nats-server: a table of them, and the four questions that other code asks."""
