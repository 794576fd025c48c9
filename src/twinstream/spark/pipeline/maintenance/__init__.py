"""Commands for the tables of a pipeline: compact, vacuum, replay, rewrite and verify."""
