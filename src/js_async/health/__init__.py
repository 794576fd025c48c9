"""A check of streams and consumers for trouble."""
