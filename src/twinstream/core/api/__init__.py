"""Calls of the JetStream API: one request, one typed answer."""
