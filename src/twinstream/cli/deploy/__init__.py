"""A folder of configurations against a server: what differs, and making it so."""
