"""What each client does to open a bucket, and to read and write its keys."""
