"""Connect to servers: options, credentials, TLS, the server pool and permissions."""
