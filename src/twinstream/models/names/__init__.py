"""Names and subjects: validation, comparison, transforms and near names."""
