"""Whole agents in virtual machines: the host's Python and this checkout under another kernel."""
