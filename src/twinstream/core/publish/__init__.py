"""Publishing: single messages, many messages, batches, schedules and counters."""
