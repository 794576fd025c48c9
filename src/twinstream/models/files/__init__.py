"""Configs in files, read as the server reads requests."""
