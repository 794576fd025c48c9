"""Reading stored messages without a consumer created by the caller."""
