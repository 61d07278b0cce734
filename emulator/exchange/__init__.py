"""Other tools' topology files as labs, and labs as theirs: containerlab and InfraGraph.

A reader turns a file into a `Graph`, a binding file adds what the file lacks, and `import_lab`
writes a lab file with an explicit topology. Exports go the other way, from a checked lab.
"""

from emulator.exchange.exporting import EXPORT_FORMATS, ExportedLab, export_lab
from emulator.exchange.importing import ImportedLab, import_lab
from emulator.exchange.to_containerlab import Images

__all__ = ["EXPORT_FORMATS", "ExportedLab", "Images", "ImportedLab", "export_lab", "import_lab"]
