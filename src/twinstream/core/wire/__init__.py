"""The NATS protocol as bytes: parser, commands, headers, subjects and status messages."""
