"""One observer for everything that a connection does. The log and `on_call` are observers, too."""
