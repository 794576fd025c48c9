"""Iceberg tables in a REST catalog, by the package pyiceberg.

This package has what a table needs from the catalog and from the object store. What a batch does
with a table is part of the pipelines, as for Delta tables.
"""
