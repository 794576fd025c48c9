"""A connection: handshake, keep-alive, requests, subscriptions and reconnecting."""
