"""From a topology to its fabric, whatever its form.

Pure: the same topology gives the same names, addresses and order, always. What is wrong is told to
a `Complaint` with the key path; nothing is raised.
"""

from emulator.lab.clos import expand_clos
from emulator.lab.direct import expand_direct
from emulator.lab.explicit import expand_explicit
from emulator.lab.fabric import Fabric
from emulator.lab.fat_tree import size_fat_tree
from emulator.lab.nodes import Complaint
from emulator.lab.topology import Clos, Direct, FatTree, Topology

__all__ = ["expand"]


def expand(topology: Topology, complain: Complaint) -> Fabric:
    """The fabric of a topology; problems go to `complain` and the faulty part is left out."""
    if isinstance(topology, FatTree):
        clos = size_fat_tree(topology, complain)
        return expand_clos(clos, complain) if clos is not None else Fabric((), (), ())
    if isinstance(topology, Direct):
        return expand_direct(topology)
    if isinstance(topology, Clos):
        return expand_clos(topology, complain)
    return expand_explicit(topology, complain)
