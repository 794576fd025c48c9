"""Backups of streams in folders, and restoring them."""
