"""Backup of streams into folders, and restore."""
