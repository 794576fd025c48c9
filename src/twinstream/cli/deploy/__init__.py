"""The work of `plan` and `apply`: compare a folder with a server, and apply the differences."""
