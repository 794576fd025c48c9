"""Settings of streams and consumers on the command line: questions, differences, files."""
