"""What a pipeline has landed: the journal, and the rows of the tables."""
