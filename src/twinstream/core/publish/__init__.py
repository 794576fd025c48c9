"""Publishing: one message, many, batches, schedules and counters."""
