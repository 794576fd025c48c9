"""The logic of JetStream API calls, of advisories, and of health checks."""
