"""The logic of workers: the queue of messages, retries of handlers, and dead letters."""
