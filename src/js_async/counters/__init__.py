"""Counters: numbers that the server adds up."""
