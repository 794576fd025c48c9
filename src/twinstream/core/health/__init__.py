"""The findings of a health check."""
