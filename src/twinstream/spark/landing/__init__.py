"""Landing: write a range of a stream to the files of a table, count it and commit it."""
