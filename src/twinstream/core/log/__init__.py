"""Log records of reports, and the callbacks that receive the reports."""
