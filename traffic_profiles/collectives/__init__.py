"""Collectives as messages: algorithms, their choice and their byte counts."""

from traffic_profiles.collectives.algorithm import Algorithm, Parameters, SplitMatrix
from traffic_profiles.collectives.choice import AlgorithmRule, AlgorithmTable
from traffic_profiles.collectives.expansion import ALGORITHMS, ExpansionError, expand
from traffic_profiles.collectives.schedule import Schedule

__all__ = [
    "ALGORITHMS",
    "Algorithm",
    "AlgorithmRule",
    "AlgorithmTable",
    "ExpansionError",
    "Parameters",
    "Schedule",
    "SplitMatrix",
    "expand",
]
