"""Makes a lab of namespaces. The order of the steps is the order of this file."""

import contextlib
import errno
import os
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from dataplane.errors import InputError, Problem, RunError
from emulator.lab.namespaces import Namespaces
from emulator.namespaces import kernel, state
from emulator.namespaces.classifying import classifier_program
from emulator.namespaces.layout import Layout, NamespacePort, Node
from emulator.namespaces.marking import (
    VALUE_BYTES,
    MarkingParameters,
    marking_parameters,
    marking_program,
)
from emulator.namespaces.netlink import (
    Channel,
    Request,
    VethEnd,
    add_address,
    add_filter,
    add_neighbour,
    add_route,
    add_veth,
    name_loopback,
    set_up,
)
from emulator.namespaces.permissions import check_permissions
from emulator.namespaces.readiness import wait_until_ready
from emulator.namespaces.removal import remove
from emulator.namespaces.settings import write_settings
from emulator.namespaces.shaping import (
    CLSACT_EGRESS,
    clsact_request,
    probe_requests,
    shaping_requests,
)
from nic_drivers.bpf import ArrayMap, ProgramKind, load_program

__all__ = ["OnStep", "bring_up", "missing_disciplines"]

OnStep = Callable[[str, int, int], None]
"""Called with what is being done, how many steps are done and how many there are."""


def bring_up(layout: Layout, on_step: OnStep = lambda *_: None) -> bool:
    """Make the lab; `False` when it is up already, as it should be.

    What an unfinished attempt left is removed first; what this one made is removed when it fails.
    Raises `InputError` when the lab is up with other settings, or a permission or a queueing
    discipline is missing, `RunError` when the kernel refuses something.
    """
    check_permissions(layout.lab)
    with state.locked(layout.lab):
        before = state.read_state(layout.lab)
        if before is not None and before.is_of_this_boot and before.phase == "up":
            _check_same(layout, before)
            return False
        if before is not None:
            remove(before)
        _probe(layout)
        kernel.prepare_names()
        _check_names(layout)
        made = state.write(state.new_state(layout))
        try:
            _Construction(layout, made, on_step).run()
        except BaseException:
            remove(made)
            raise
    return True


def _check_same(layout: Layout, before: state.LabState) -> None:
    if before.digest != state.digest_of(layout):
        remedy = f"take it down first: rankwire lab down {layout.lab}"
        raise InputError(Problem(f"lab {layout.lab}", "is up with other settings", remedy))


def _check_names(layout: Layout) -> None:
    """Raise `InputError` for namespaces of that name which are not ours."""
    taken = [node.namespace for node in layout.nodes if (kernel.NAMES / node.namespace).exists()]
    if taken:
        what = f"needs the names of {len(taken)} namespaces that exist already: {taken[0]}"
        remedy = "remove them with `ip netns del`, or give the lab another name"
        raise InputError(Problem(f"lab {layout.lab}", what, remedy))


def _probe(layout: Layout) -> None:
    """Raise `InputError` for queueing disciplines that the kernel does not have."""
    missing = missing_disciplines(layout.options)
    if missing:
        what = f"needs {' and '.join(missing)}, which this kernel does not have"
        remedy = f"load it with modprobe {missing[0]}, or use another shaper or marking"
        raise InputError(Problem(f"lab {layout.lab}", what, remedy))


def missing_disciplines(options: Namespaces) -> list[str]:
    """Modules of queueing disciplines that the kernel does not have: tried in a new namespace."""
    with kernel.unshared(), contextlib.closing(Channel()) as channel:
        return [
            f"sch_{kind}"
            for kind, request in probe_requests(options)
            if channel.attempt(request) == errno.ENOENT
        ]


_Item = TypeVar("_Item")


class _Construction:
    """One lab on its way up."""

    def __init__(self, layout: Layout, made: state.LabState, on_step: OnStep) -> None:
        self._layout = layout
        self._state = made
        self._on_step = on_step
        self._channels: dict[str, Channel] = {}
        self._loaded: list[int] = []
        self._programs: dict[str, tuple[str, int]] = {}
        self._done = 0
        self._total = 3 * len(layout.nodes) + len(layout.links)

    def run(self) -> None:
        """Make everything."""
        try:
            for node in self._steps("namespaces", self._layout.nodes):
                self._make_namespace(node)
            for near, far in self._steps("links", self._layout.links):
                self._make_link(near, far)
            self._load_programs()
            ports: dict[str, list[NamespacePort]] = {node.name: [] for node in self._layout.nodes}
            for port in self._layout.ports:
                ports[port.node].append(port)
            for node in self._steps("routes and queues", self._layout.nodes):
                self._channels[node.namespace].apply(list(self._requests(node, ports[node.name])))
            for node in self._steps("carriers", self._layout.nodes):
                indices = [port.index for port in ports[node.name]]
                wait_until_ready(node.namespace, self._channels[node.namespace], indices)
            state.write(self._state, phase="up")
        finally:
            self._close()

    def _steps(self, what: str, items: Sequence[_Item]) -> Iterator[_Item]:
        for item in items:
            self._on_step(what, self._done, self._total)
            yield item
            self._done += 1

    def _make_namespace(self, node: Node) -> None:
        """Mark it as ours first: what has a name can be told from others' from then on."""
        try:
            with kernel.unshared():
                channel = Channel()
                self._channels[node.namespace] = channel
                channel.apply([name_loopback(self._state.token)])
                write_settings(is_switch=node.is_switch, seed=node.seed)
                kernel.bind_name(node.namespace)
        except OSError as error:
            where = f" ({error.filename})" if error.filename else ""
            raise RunError(
                f"the namespace {node.namespace} cannot be made: {error.strerror}{where}"
            ) from error

    def _make_link(self, near: NamespacePort, far: NamespacePort) -> None:
        with open(kernel.NAMES / far.namespace, "rb") as namespace:
            request = add_veth(self._end(near), self._end(far), namespace.fileno())
            self._channels[near.namespace].apply([request])

    def _end(self, port: NamespacePort) -> VethEnd:
        """A host's interface cuts packets itself, so that switches queue and mark each of them."""
        mtu_bytes = self._layout.options.mtu_bytes
        segments = None if port.is_switch else 1
        return VethEnd(port.interface, port.index, port.mac, mtu_bytes, segments)

    def _load_programs(self) -> None:
        """Those that mark, one for each port, and one that only classifies for all the others."""
        parameters = marking_parameters(self._layout)
        if parameters:
            self._load_marking(parameters)
        strict = self._layout.strict_dscps
        others = [port.place for port in self._layout.ports if port.place not in parameters]
        if strict and others:
            code = classifier_program(strict)
            self._load("rankwire_class", code, others)

    def _load_marking(self, parameters: dict[str, MarkingParameters]) -> None:
        """One map for all ports; the attached programs keep it alive."""
        with ArrayMap.create("rankwire_ports", VALUE_BYTES, len(parameters)) as counters:
            self._state = state.write(self._state, map_number=counters.number)
            for place, values in parameters.items():
                code = marking_program(values, counters.descriptor)
                self._load("rankwire_mark", code, [place])

    def _load(self, name: str, code: bytes, places: Sequence[str]) -> None:
        program = load_program(ProgramKind.TRAFFIC_CLASSIFIER, name, code)
        self._loaded.append(program)
        self._programs.update(dict.fromkeys(places, (name, program)))

    def _requests(self, node: Node, ports: Sequence[NamespacePort]) -> Iterator[Request]:
        """Everything inside one namespace. Addresses come before routes, which name them."""
        yield add_address(1 if node.is_switch else ports[0].index, node.address)
        options = self._layout.options
        has_strict_band = bool(self._layout.strict_dscps)
        indices = {port.interface: port.index for port in ports}
        for port in ports:
            yield from shaping_requests(port, options, has_strict_band=has_strict_band)
            program = self._programs.get(port.place)
            if program is not None:
                name, descriptor = program
                yield clsact_request(port.index)
                yield add_filter(port.index, CLSACT_EGRESS, descriptor, name)
            yield set_up(port.index, port.interface)
            yield add_neighbour(port.index, port.peer_address, port.peer_mac)
        for route in self._layout.routes[node.name]:
            yield add_route(route, node.address, indices)

    def _close(self) -> None:
        for channel in self._channels.values():
            channel.close()
        for program in self._loaded:
            os.close(program)
