"""Messages that the server publishes later or repeatedly."""
