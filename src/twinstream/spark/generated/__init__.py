"""Generated Spark types. Edit schema/ instead, then run `make gen`."""
