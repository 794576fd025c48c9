"""The help pages of commands: examples, suggestions and completion."""
