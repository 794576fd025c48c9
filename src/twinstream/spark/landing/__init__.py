"""Land ranges of a stream: write the messages to files of tables, count the rows and commit."""
