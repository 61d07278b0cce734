"""Routes and pauses: whether pauses can wait for each other in a circle."""

from collections.abc import Iterator

from emulator.doctor.diagnosis import Diagnosis, Level
from emulator.lab import LoadedLab
from emulator.lab.effective import lossless_priorities, notification_preset
from emulator.lab.fabric import Fabric

__all__ = ["routing_rules"]

_Hop = tuple[int, int]
"""A directed step between two switches."""


def routing_rules(loaded: LoadedLab) -> Iterator[Diagnosis]:
    """Findings about the routes."""
    yield from _reordering(loaded)
    if len(loaded.fabric.switches) < 2 or not lossless_priorities(loaded.lab):
        return
    rule = "pauses can't wait in a circle"
    circle = pause_circle(loaded.fabric)
    if circle:
        names = " -> ".join(loaded.fabric.switches[switch].name for switch in circle)
        finding = f"shortest paths make the buffers wait on each other: {names}"
        remedy = "remove a link of the circle, or turn PFC off"
        yield Diagnosis(Level.WARNING, rule, finding, remedy)
    else:
        yield Diagnosis(Level.GOOD, rule, "shortest paths make no circle of buffers")


def _reordering(loaded: LoadedLab) -> Iterator[Diagnosis]:
    lab = loaded.lab
    mode = lab.switches.path_selection.mode
    if mode == "flow":
        return
    recovery = lab.transport.loss_recovery
    finding = f"switches choose paths by {mode}, and recovery is {recovery}"
    remedy = ""
    if recovery == "go_back_n":
        remedy = "set transport.loss_recovery=selective_repeat, or whole windows are sent again"
    level = Level.WARNING if remedy else Level.GOOD
    yield Diagnosis(level, "reordering is no loss", finding, remedy)
    if lab.notification_point.resolve(notification_preset(lab))["cnp_on_nak"].value:
        finding = f"switches choose paths by {mode}, and every NAK brings a notification"
        remedy = "set np.cnp_on_nak=false, or senders slow down although no queue is long"
        yield Diagnosis(Level.WARNING, "reordering is no congestion", finding, remedy)


def pause_circle(fabric: Fabric) -> list[int]:
    """Switches of one circle of buffer dependencies; empty when there is none.

    The buffer of step u -> v waits on that of v -> w when some traffic goes u, v, w.
    Source: up-down routing of a Clos has no such circle; any other may deadlock.
    """
    waits = _dependencies(fabric)
    state: dict[_Hop, int] = {}
    for start in waits:
        circle = _circle_from(start, waits, state)
        if circle:
            return circle
    return []


def _dependencies(fabric: Fabric) -> dict[_Hop, set[_Hop]]:
    hops = fabric.switch_hops
    adjacent = [
        sorted({other.index for _, other, _ in entries if other.is_switch})
        for entries in fabric.neighbours
    ]
    targets = {entry[0] for entry in fabric.attachment if entry is not None}
    waits: dict[_Hop, set[_Hop]] = {}
    for target in targets:
        nearer = [
            [other for other in others if hops[other, target] == hops[switch, target] - 1]
            for switch, others in enumerate(adjacent)
        ]
        used = _used_switches(nearer, targets - {target})
        for switch in used:
            for middle in nearer[switch]:
                steps = waits.setdefault((switch, middle), set())
                steps.update((middle, far) for far in nearer[middle])
    return waits


def _used_switches(nearer: list[list[int]], sources: set[int]) -> set[int]:
    """Switches that carry traffic of `sources` on the way."""
    used: set[int] = set()
    waiting = list(sources)
    while waiting:
        switch = waiting.pop()
        if switch not in used:
            used.add(switch)
            waiting.extend(nearer[switch])
    return used


def _circle_from(start: _Hop, waits: dict[_Hop, set[_Hop]], state: dict[_Hop, int]) -> list[int]:
    """Depth-first search without recursion: 1 is on the path, 2 is done."""
    path: list[_Hop] = []
    stack: list[tuple[_Hop, bool]] = [(start, False)]
    while stack:
        step, leaving = stack.pop()
        if leaving:
            state[step] = 2
            path.pop()
        elif state.get(step, 0) == 0:
            state[step] = 1
            path.append(step)
            stack.append((step, True))
            for following in sorted(waits.get(step, ())):
                if state.get(following, 0) == 1:
                    circle = path[path.index(following) :]
                    return [hop[0] for hop in circle] + [circle[0][0]]
                stack.append((following, False))
    return []
