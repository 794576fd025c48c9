"""Generated Arrow types. Edit schema/ instead, then run `make gen`."""
