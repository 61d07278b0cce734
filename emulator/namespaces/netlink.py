"""Requests to the kernel's routing socket: compiled by pyroute2, sent in batches.

The only module that imports pyroute2. Every request is acknowledged. A channel stays in the
namespace that it was opened in. Interfaces get their index when they are made, so that requests
need no answers of earlier ones.
"""

import contextlib
import os
import socket
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from pyroute2.netlink.rtnl import marshal
from pyroute2.netlink.rtnl.ifaddrmsg import ifaddrmsg
from pyroute2.netlink.rtnl.ifinfmsg import ifinfmsg
from pyroute2.netlink.rtnl.ndmsg import ndmsg
from pyroute2.netlink.rtnl.rtmsg import rtmsg
from pyroute2.netlink.rtnl.tcmsg import tcmsg

from dataplane.errors import RunError
from emulator.namespaces.layout import Route

__all__ = [
    "Channel",
    "Request",
    "VethEnd",
    "add_address",
    "add_class",
    "add_filter",
    "add_neighbour",
    "add_qdisc",
    "add_route",
    "add_veth",
    "delete_route",
    "name_loopback",
    "set_down",
    "set_up",
]

# include/uapi/linux/rtnetlink.h, netlink.h, neighbour.h
_NEW_LINK, _GET_LINK, _SET_LINK = 16, 18, 19
_NEW_ADDRESS, _NEW_ROUTE, _DELETE_ROUTE, _NEW_NEIGHBOUR = 20, 24, 25, 28
_NEW_QDISC, _GET_QDISC, _NEW_CLASS, _NEW_FILTER = 36, 38, 40, 44
_ERROR, _DONE = 2, 3
_REQUEST, _ACKNOWLEDGE, _DUMP = 0x1, 0x4, 0x300
_CREATE_NEW, _CREATE_OR_REPLACE = 0x600, 0x500
_PERMANENT = 0x80
_ONLINK = 4
_UP = 1

_SOL_NETLINK, _CAP_ACK, _EXT_ACK = 270, 10, 11
_HEADER = struct.Struct("=IHHII")
_TC_INDEX_OFFSET = _HEADER.size + 4
_BATCH: Final = 64
"""Requests sent before their acknowledgements are read: these fit a receive buffer."""


@dataclass(frozen=True, slots=True)
class Request:
    """One compiled request."""

    what: str
    """For messages: what it would do."""
    data: bytes


@dataclass(frozen=True, slots=True)
class VethEnd:
    """One end of a pair of interfaces."""

    interface: str
    index: int
    mac: str
    mtu_bytes: int
    max_segments: int | None = None
    """Segments of a packet that the interface takes in one piece; the kernel's own if `None`."""


class Channel:
    """A routing socket in the namespace of the thread that makes it."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self._socket.setsockopt(_SOL_NETLINK, _CAP_ACK, 1)
        self._socket.setsockopt(_SOL_NETLINK, _EXT_ACK, 1)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def apply(self, requests: Sequence[Request]) -> None:
        """Send the requests in order; raises `RunError` for the first that the kernel refuses."""
        for start in range(0, len(requests), _BATCH):
            batch = requests[start : start + _BATCH]
            self._socket.send(
                b"".join(_numbered(request.data, i) for i, request in enumerate(batch))
            )
            self._acknowledgements(batch)

    def attempt(self, request: Request) -> int:
        """Send one request; 0, or the kernel's error number."""
        self._socket.send(request.data)
        while True:
            for kind, _, body in _messages(self._socket.recv(1 << 16)):
                if kind == _ERROR:
                    return -int(struct.unpack_from("=i", body)[0])

    def links(self) -> list[Any]:
        """pyroute2's messages about every interface."""
        return self._dump(_GET_LINK, struct.pack("=BxHiII", 0, 0, 0, 0, 0))

    def qdiscs(self) -> list[Any]:
        """pyroute2's messages about every queueing discipline."""
        return self._dump(_GET_QDISC, bytes(20))

    def _acknowledgements(self, batch: Sequence[Request]) -> None:
        missing = len(batch)
        failed: dict[int, str] = {}
        while missing:
            for kind, number, body in _messages(self._socket.recv(1 << 16)):
                if kind != _ERROR:
                    continue
                missing -= 1
                (status,) = struct.unpack_from("=i", body)
                if status:
                    failed[number] = _reason(-status, body)
        if failed:
            number = min(failed)
            raise RunError(f"the kernel refused to {batch[number].what}: {failed[number]}")

    def _dump(self, kind: int, body: bytes) -> list[Any]:
        header = _HEADER.pack(_HEADER.size + len(body), kind, _REQUEST | _DUMP, 0, 0)
        self._socket.send(header + body)
        found: list[Any] = []
        while True:
            data = self._socket.recv(1 << 18)
            kinds = [kind for kind, _, _ in _messages(data)]
            found.extend(
                message
                for message in marshal.MarshalRtnl().parse(data)
                if message["header"]["type"] not in {_ERROR, _DONE}
            )
            if _DONE in kinds or _ERROR in kinds:
                return found


def add_veth(near: VethEnd, far: VethEnd, far_namespace: int) -> Request:
    """Make a pair of interfaces, the far one in the namespace of that file descriptor."""
    peer = {
        "index": far.index,
        "attrs": [*_link_attributes(far), ("IFLA_NET_NS_FD", far_namespace)],
    }
    information = [
        ("IFLA_INFO_KIND", "veth"),
        ("IFLA_INFO_DATA", {"attrs": [("VETH_INFO_PEER", peer)]}),
    ]
    message = ifinfmsg()
    message["index"] = near.index
    message["attrs"] = [*_link_attributes(near), ("IFLA_LINKINFO", {"attrs": information})]
    what = f"make the interfaces {near.interface} and {far.interface}"
    return _compiled(what, message, _NEW_LINK, _CREATE_NEW)


def name_loopback(alias: str) -> Request:
    """Set the alias of the loopback interface, and bring it up."""
    message = ifinfmsg()
    message["index"], message["flags"], message["change"] = 1, _UP, _UP
    message["attrs"] = [("IFLA_IFALIAS", alias)]
    return _compiled("name the loopback interface", message, _SET_LINK)


def set_up(index: int, interface: str) -> Request:
    """Bring an interface up."""
    message = ifinfmsg()
    message["index"], message["flags"], message["change"] = index, _UP, _UP
    return _compiled(f"bring {interface} up", message, _SET_LINK)


def set_down(index: int, interface: str) -> Request:
    """Take an interface down; the kernel drops what it held and forgets routes over it."""
    message = ifinfmsg()
    message["index"], message["flags"], message["change"] = index, 0, _UP
    return _compiled(f"take {interface} down", message, _SET_LINK)


def add_address(index: int, address: str) -> Request:
    """Give an interface an address of its own, with no network behind it."""
    message = ifaddrmsg()
    message["family"], message["prefixlen"], message["index"] = socket.AF_INET, 32, index
    message["attrs"] = [("IFA_LOCAL", address), ("IFA_ADDRESS", address)]
    return _compiled(f"give the address {address}", message, _NEW_ADDRESS, _CREATE_NEW)


def add_neighbour(index: int, address: str, mac: str, *, replaces: bool = False) -> Request:
    """Say for good which MAC address is behind a neighbour, so that nobody has to ask."""
    message = ndmsg()
    message["family"], message["ifindex"], message["state"] = socket.AF_INET, index, _PERMANENT
    message["attrs"] = [("NDA_DST", address), ("NDA_LLADDR", mac)]
    return _compiled(f"add the neighbour {address}", message, _NEW_NEIGHBOUR, _create(replaces))


def add_route(
    route: Route, source: str, indices: dict[str, int], *, replaces: bool = False
) -> Request:
    """Add a route over one or several equal-cost next hops."""
    destination, _, length = route.destination.partition("/")
    message = rtmsg()
    message["family"], message["dst_len"] = socket.AF_INET, int(length)
    # The main table, by an administrator, to anywhere, unicast.
    message["table"], message["proto"], message["scope"], message["type"] = 254, 4, 0, 1
    hops = [
        {
            "oif": indices[hop.interface],
            "flags": _ONLINK,
            "hops": 0,
            "attrs": [("RTA_GATEWAY", hop.gateway)],
        }
        for hop in route.next_hops
    ]
    message["attrs"] = [
        ("RTA_DST", destination),
        ("RTA_PREFSRC", source),
        ("RTA_MULTIPATH", hops),
    ]
    return _compiled(f"add the route to {destination}", message, _NEW_ROUTE, _create(replaces))


def delete_route(destination: str) -> Request:
    """Remove the route to a destination, given with its prefix length."""
    network, _, length = destination.partition("/")
    message = rtmsg()
    message["family"], message["dst_len"] = socket.AF_INET, int(length)
    message["table"], message["scope"] = 254, 255
    message["attrs"] = [("RTA_DST", network)]
    return _compiled(f"remove the route to {destination}", message, _DELETE_ROUTE)


def add_qdisc(index: int, kind: str, handle: int, parent: int, options: Any = None) -> Request:
    """Add a queueing discipline."""
    data = _tc(_NEW_QDISC, kind, handle, parent, 0, _Options(options))
    return Request(f"add the queueing discipline {kind}", _for_interface(data, index))


def add_class(index: int, kind: str, handle: int, parent: int, options: Any) -> Request:
    """Add a class of a queueing discipline."""
    data = _tc(_NEW_CLASS, kind, handle, parent, 0, _Options(options))
    return Request(f"add a class of {kind}", _for_interface(data, index))


def add_filter(index: int, parent: int, program: int, name: str) -> Request:
    """Attach a loaded eBPF program, given by its file descriptor, in direct-action mode."""
    attributes = [
        ("TCA_BPF_FD", program),
        ("TCA_BPF_NAME", name),
        ("TCA_BPF_FLAGS", 1),
    ]
    # Priority 1, all protocols (ETH_P_ALL in network order).
    information = (1 << 16) | socket.htons(3)
    data = _tc(_NEW_FILTER, "bpf", 1, parent, information, _Options({"attrs": attributes}))
    return Request("attach the marking program", _for_interface(data, index))


class _Options:
    """Options of a request, comparable by their text so that equal requests compile once."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self._text = repr(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Options) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)


@lru_cache(maxsize=256)
def _tc(
    kind: int, discipline: str, handle: int, parent: int, information: int, options: _Options
) -> bytes:
    message = tcmsg()
    message["handle"], message["parent"], message["info"] = handle, parent, information
    message["attrs"] = [("TCA_KIND", discipline)]
    if options.value is not None:
        message["attrs"].append(("TCA_OPTIONS", options.value))
    return _compiled("", message, kind, _CREATE_NEW).data


def _for_interface(data: bytes, index: int) -> bytes:
    place = _TC_INDEX_OFFSET
    return data[:place] + struct.pack("=i", index) + data[place + 4 :]


def _link_attributes(end: VethEnd) -> list[tuple[str, Any]]:
    attributes: list[tuple[str, Any]] = [
        ("IFLA_IFNAME", end.interface),
        ("IFLA_ADDRESS", end.mac),
        ("IFLA_MTU", end.mtu_bytes),
    ]
    if end.max_segments is not None:
        attributes.append(("IFLA_GSO_MAX_SEGS", end.max_segments))
    return attributes


def _create(replaces: bool) -> int:
    return _CREATE_OR_REPLACE if replaces else _CREATE_NEW


def _compiled(what: str, message: Any, kind: int, flags: int = 0) -> Request:
    message["header"]["type"] = kind
    message["header"]["flags"] = _REQUEST | _ACKNOWLEDGE | flags
    message["header"]["sequence_number"] = 0
    message["header"]["pid"] = 0
    message.encode()
    return Request(what, bytes(message.data))


def _numbered(data: bytes, number: int) -> bytes:
    length = -len(data) % 4
    return data[:8] + struct.pack("=I", number) + data[12:] + bytes(length)


def _messages(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Kind, sequence number and body of each message."""
    place = 0
    while place + _HEADER.size <= len(data):
        length, kind, _, number, _ = _HEADER.unpack_from(data, place)
        if length < _HEADER.size:
            return
        yield kind, number, data[place + _HEADER.size : place + length]
        place += (length + 3) & ~3


def _reason(number: int, body: bytes) -> str:
    """The error's name, and what the kernel says beside it (NLMSGERR_ATTR_MSG)."""
    place = 4 + _HEADER.size
    with contextlib.suppress(struct.error):
        while place < len(body):
            length, kind = struct.unpack_from("=HH", body, place)
            if kind & 0x3FFF == 1:
                text = body[place + 4 : place + length].rstrip(b"\0").decode(errors="replace")
                return f"{os.strerror(number)} ({text})"
            place += max((length + 3) & ~3, 4)
    return os.strerror(number)
