"""Labs of network namespaces: what the lab file asks for and the kernel's devices don't do."""

from collections.abc import Iterator

from emulator.doctor.diagnosis import Diagnosis, Level
from emulator.lab import LoadedLab

__all__ = ["namespace_rules"]


def namespace_rules(loaded: LoadedLab) -> Iterator[Diagnosis]:
    """Findings about what `rankwire lab up` would leave out; none for other labs."""
    lab = loaded.lab
    if lab.namespaces is None:
        return
    rule = "the namespaces do what the lab asks for"
    ignored = []
    if lab.switches.pfc.enabled:
        ignored.append("PFC (full ports drop)")
    if lab.switches.path_selection.mode != "flow":
        ignored.append(f"path_selection.mode {lab.switches.path_selection.mode} (flows by hash)")
    if lab.impairments:
        ignored.append("impairments")
    if ignored:
        finding = f"`lab up` leaves out {', '.join(ignored)}; predictions have all of it"
        remedy = "turn it off in the lab, or compare with that in mind"
        yield Diagnosis(Level.WARNING, rule, finding, remedy)
    else:
        yield Diagnosis(Level.GOOD, rule, "nothing is left out but delays and weights")
