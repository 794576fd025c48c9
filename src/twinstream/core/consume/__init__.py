"""Consuming: pulls, iterations, handlers, ordered and pushed messages, acknowledgements."""
