"""Decode JSON payloads and server events to typed columns."""
