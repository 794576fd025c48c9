"""Streams into folders, and back."""
