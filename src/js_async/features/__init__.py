"""Features on top of streams and consumers: counters, schedules, health checks."""
