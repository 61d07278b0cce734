"""Built-in jobs: named generators of trace files that are read back like any other."""

from traffic_profiles.profiles.catalogue import PROFILES, generate
from traffic_profiles.profiles.profile import GeneratedProfile, Parameter, Profile

__all__ = ["PROFILES", "GeneratedProfile", "Parameter", "Profile", "generate"]
