"""Writes that the stream stores only once, the outbox, and processing without duplicates."""
