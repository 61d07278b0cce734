"""What is likely to go wrong with a lab: rules of the field, checked before a run.

A lab that loads is possible; a diagnosis says whether it is wise. `diagnose` collects them.
"""

from emulator.doctor.buffers import buffer_rules
from emulator.doctor.cabling import cabling_rules
from emulator.doctor.classes import class_rules
from emulator.doctor.diagnosis import Diagnosis, Level
from emulator.doctor.machine import machine_rules
from emulator.doctor.namespaces import namespace_rules
from emulator.doctor.rates import rate_rules
from emulator.doctor.routing import routing_rules
from emulator.lab import LoadedLab

__all__ = ["Diagnosis", "Level", "diagnose", "diagnose_network"]


def diagnose(loaded: LoadedLab) -> list[Diagnosis]:
    """Every rule's finding, good ones included, worst first."""
    return _worst_first(
        [*diagnose_network(loaded), *namespace_rules(loaded), *machine_rules(loaded)]
    )


def diagnose_network(loaded: LoadedLab) -> list[Diagnosis]:
    """The same without the rules about this machine: what holds for a prediction too."""
    findings = [
        *class_rules(loaded),
        *buffer_rules(loaded),
        *rate_rules(loaded),
        *routing_rules(loaded),
        *cabling_rules(loaded),
    ]
    return _worst_first(findings)


def _worst_first(findings: list[Diagnosis]) -> list[Diagnosis]:
    return sorted(findings, key=lambda finding: -finding.level.value)
