"""Collectives as messages: algorithms, their choice and their byte counts."""

from traffic_profiles.collectives.choice import AlgorithmRule

__all__ = ["AlgorithmRule"]
