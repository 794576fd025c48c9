"""Connecting: options, credentials, TLS, the server pool and permissions."""
