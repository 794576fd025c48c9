"""JetStream API calls: one request, one typed response."""
