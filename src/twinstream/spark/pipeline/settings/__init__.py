"""The settings of a pipeline: its configuration file, its tables and their folders."""
