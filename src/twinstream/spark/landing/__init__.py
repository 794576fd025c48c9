"""Land a range of a stream: write its messages to files of tables, count them and commit them."""
