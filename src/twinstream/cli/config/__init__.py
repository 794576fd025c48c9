"""Commands for configuration files, permissions, subjects and sizes.

Only `plan`, `apply` and `size --live` need a server.
"""
