"""Reading stored messages without a user-managed consumer."""
