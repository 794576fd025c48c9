"""Conditional writes, the outbox, and the processing of messages without duplicate results."""
