"""Consume messages: pull requests, iterations, ordered and push consumers, acknowledgements."""
