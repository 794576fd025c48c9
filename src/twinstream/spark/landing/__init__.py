"""Landing: a range of a stream in files of a table, counted and committed."""
