"""The documentation site: the guides of docs/, and a reference that is made from the sources."""
