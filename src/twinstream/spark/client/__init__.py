"""Connect driver and executors to servers."""
