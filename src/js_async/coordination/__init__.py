"""Locks, leases, leaders and rate limits on a stream."""
