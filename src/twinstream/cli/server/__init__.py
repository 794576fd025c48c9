"""Commands on accounts, clusters, events and backups."""
