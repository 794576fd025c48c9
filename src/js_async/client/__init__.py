"""The connection to a server: handshake, keep-alive, requests, subscriptions and reconnecting."""
