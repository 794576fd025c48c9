"""Writes that are stored once, the outbox, and processing without duplicates."""
