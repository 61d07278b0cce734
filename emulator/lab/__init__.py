"""The lab model: what stands in the lab and which settings hold.

`load_lab` is the way in; `Lab` is the checked, passive result.
"""

from emulator.lab.loading import LoadedLab, find_lab, lab_directory, list_labs, load, load_lab
from emulator.lab.model import Lab

__all__ = ["Lab", "LoadedLab", "find_lab", "lab_directory", "list_labs", "load", "load_lab"]
