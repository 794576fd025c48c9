"""What a pipeline has landed: the journal, Spark's checkpoint, and the rows of the tables."""
