"""Write log records for reports, and pass the reports to callbacks."""
