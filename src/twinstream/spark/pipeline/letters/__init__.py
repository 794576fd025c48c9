"""Dead letters as a queue: count them, land them again from their files, publish them."""
