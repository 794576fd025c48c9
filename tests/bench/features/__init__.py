"""The features of Python's JetStream clients and of nats.go, proven by their public names."""
