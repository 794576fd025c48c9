"""The source: batch and streaming reads of streams."""
