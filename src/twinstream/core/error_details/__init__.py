"""What errors carry besides their text."""
