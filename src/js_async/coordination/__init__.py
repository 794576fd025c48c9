"""Locks, semaphores, rate limits, run-once work and leader election, based on a stream."""
