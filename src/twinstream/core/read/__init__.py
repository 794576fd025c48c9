"""Read stored messages of a stream. The caller need not create a consumer."""
