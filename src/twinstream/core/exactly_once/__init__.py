"""Conditional writes, the outbox, and processing without duplicates."""
