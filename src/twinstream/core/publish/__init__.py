"""Publish to streams: single messages, many messages, batches, schedules and counters."""
