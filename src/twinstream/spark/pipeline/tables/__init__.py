"""The Parquet, Delta and Iceberg tables of a pipeline, and their lock."""
