"""Benchmarks: every figure is a ratio against a named peer or limit measured in the same run."""
