"""The charts of the report, one module for each subject; each returns charts from records."""
