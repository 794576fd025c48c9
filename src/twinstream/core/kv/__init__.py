"""The key-value store: names, configurations, entries and watches, without I/O."""
