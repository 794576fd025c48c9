"""The `jetstream` source: batch and streaming reads of streams."""
