"""Objects that work in the background: their life cycle."""
