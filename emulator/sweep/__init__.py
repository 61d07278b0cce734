"""Sweeps: one job under many settings, ranked by a figure."""
