"""Objects on a server that speaks S3: the journals and the files of a lake."""
