"""Workers, which call a handler for each message, with retries and dead letters."""
