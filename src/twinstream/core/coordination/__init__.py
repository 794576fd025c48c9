"""Locks, semaphores, leaders and rate limits, whose state is stored in a stream."""
