"""Consuming: pull requests, iterations, ordered and push consumers, acknowledgements."""
