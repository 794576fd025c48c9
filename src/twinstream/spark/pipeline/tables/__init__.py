"""The Parquet and Delta tables of a pipeline, and their lock."""
