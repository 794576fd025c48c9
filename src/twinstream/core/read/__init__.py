"""Reading stored messages without a consumer of the user's."""
