"""Values that exceptions carry, and that need no exception themselves."""
