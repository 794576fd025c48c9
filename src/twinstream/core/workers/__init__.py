"""Handlers with retries and dead letters."""
