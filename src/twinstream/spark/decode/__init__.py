"""JSON payloads and events as typed columns."""
