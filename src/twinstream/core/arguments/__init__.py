"""Checks of arguments, and the errors of calls that another library would accept."""
