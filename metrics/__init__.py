"""Catalogue, exporter, records, analysis and report."""
