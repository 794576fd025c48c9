"""Helpers for all other folders: argument checks, timestamps, lazy imports and test hooks."""
