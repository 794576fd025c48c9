"""Publishing: single messages, many messages without waiting and atomic batches."""
