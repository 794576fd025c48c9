"""Conversion between JSON and models: records, their fields, decoder and encoder."""
