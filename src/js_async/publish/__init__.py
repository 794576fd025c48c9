"""Publishing: single messages, many messages without waiting, atomic batches and fast ingest."""
