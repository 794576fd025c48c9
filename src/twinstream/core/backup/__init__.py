"""Back up streams to folders, and restore them."""
