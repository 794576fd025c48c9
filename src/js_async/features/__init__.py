"""Features on top of streams and consumers, one module each: counters, schedules, health."""
