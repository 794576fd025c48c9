"""Writes that depend on the last message of their subject, and the settings they need."""
