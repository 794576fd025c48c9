"""The NATS protocol as bytes: parsing, headers, subjects and status lines."""
