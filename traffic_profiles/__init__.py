"""Traces in, programs out."""
