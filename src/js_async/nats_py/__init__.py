"""JetStream over a connection of nats-py."""
