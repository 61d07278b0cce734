"""Types of the compiled module; the sources are in `dataplane/src/bindings`."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

__version__: str

class TraceError(Exception):
    """A trace file that cannot be read.

    `args` are the file, the byte offset in the decompressed file, what is wrong, and what would
    be right.
    """

def read_trace(path: str | PathLike[str], *, limit_bytes: int | None = None) -> dict[str, Any]:
    """Read a Chakra trace of any dialect, plain or gzip, into columns: one row for each node.

    The keys are the fields of `traffic_profiles.chakra.TraceTable`, without rank and path. A
    decompressed size above `limit_bytes` is an error. Raises `TraceError`.
    """

def topological_order(
    offsets: NDArray[np.uint64], parents: NDArray[np.uint32], keys: NDArray[np.int64]
) -> NDArray[np.uint32]:
    """Vertices in topological order, smallest key first among the ready, then smallest index.

    The parents of vertex i are `parents[offsets[i]:offsets[i+1]]`. A vertex counts with a key of
    at least its parents'. Vertices on a cycle or behind one are left out.
    """

def find_cycle(
    offsets: NDArray[np.uint64], parents: NDArray[np.uint32], order: NDArray[np.uint32]
) -> list[int]:
    """Find one cycle among the vertices that `order` leaves out; empty when there is none.

    Each vertex of the result is a parent of the one before it, the first of the last.
    """

class ConfigError(ValueError):
    """A job configuration or a program that cannot be executed; the message names the place."""

class Program:
    """One rank's program in the engine: a copy of the arrays of `traffic_profiles.Program`."""

    def __init__(
        self,
        *,
        rank: int,
        kind: NDArray[np.uint8],
        peer: NDArray[np.uint32],
        size_bytes: NDArray[np.uint64],
        duration_ps: NDArray[np.uint64],
        lane: NDArray[np.int32],
        peer_op: NDArray[np.uint32],
        instance: NDArray[np.uint32],
        row: NDArray[np.uint32],
        dep_offsets: NDArray[np.uint32],
        deps: NDArray[np.uint32],
        channel: NDArray[np.uint16] | None = None,
        traffic_class: NDArray[np.uint8] | None = None,
    ) -> None: ...
    @property
    def rank(self) -> int:
        """The rank that executes it."""
    def __len__(self) -> int: ...

class Emulation:
    """A whole job in virtual time: bit for bit the same on every run with the same seed.

    Raises `ConfigError` when the configuration or a program cannot be executed.
    """

    def __init__(self, config_json: str, programs: Sequence[Program]) -> None: ...
    def advance(self, until_ps: int | None = None, max_events: int = ...) -> bool:
        """Handle events up to `until_ps`, at most `max_events`; releases the GIL.

        True when every operation is complete, or when nothing will ever happen again although
        some are not (`is_done` tells which).
        """
    @property
    def now_ps(self) -> int:
        """Emulated time in picoseconds."""
    @property
    def is_done(self) -> bool:
        """Whether every operation is complete."""
    def progress(self) -> dict[str, int]:
        """Return a few numbers cheaply, whatever the size of the job.

        `now_ps`, `ops_done`, `ops_total`, `events`, and `bytes_arrived`: payload that came to NICs,
        repetitions included.
        """
    def snapshot(self) -> dict[str, Any]:
        """Return cumulative totals.

        `now_ps`, `ops_done`, `ops_total`, `bytes_delivered` (payload accepted in order), `events`,
        `frames_delivered`, `failed_qps`; and tables of columns, `links` (one row per direction,
        link 0 end a first), `queues` (as of the last sample), `nics` (in the order of the
        configuration), `pauses` (begun by each ingress of a lossless priority) and `link_changes`
        (one row per link; none without events).
        """
    def completed(self) -> dict[str, Any]:
        """Return `rank`, `op`, `start_ps`, `end_ps` of what completed since the last call."""
    def blocked(self, limit: int) -> list[dict[str, Any]]:
        """Return operations that have started and are not complete, the longest waiting first.

        Keys: `rank`, `op`, `kind`, `peer`, `size_bytes`, `received_bytes`, `waiting_for`.
        """
    def records(self) -> dict[str, Any]:
        """Return the final tables `ops`, `links`, `queues`, `qps`, `failures` and `counters`.

        `end_ps` is 2**64 - 1 for an operation that is not complete. Series have rows only for
        samples in which something happened; `time_ps` is a sample's end.
        """

class WireError(OSError):
    """A wire that cannot be opened or used; the message names the end, the port and the remedy."""

class PortError(OSError):
    """A port that cannot be opened; the message names driver, address, reason and remedy."""

class Port:
    """A port of a driver on an interface of the operating system.

    `spec_json` describes it: `driver` (`udp`, `af_packet`, `af_xdp`), `address`, and optionally
    `interface`, `namespace`, `max_burst_packets`, `source_ports`, `destinations`,
    `ip_packet_bytes`, `xdp_mode` (`any`, `native`, `generic`) and `busy_poll_us`. Every
    destination must have a route on which IP packets of `ip_packet_bytes` pass. Raises
    `PortError`, `ValueError` for another description, and `RuntimeError` when it is closed.
    """

    def __init__(self, spec_json: str) -> None: ...
    def capabilities(self) -> dict[str, Any]:
        """Return what it can do.

        `max_frame_bytes`; `max_burst_packets` that the kernel is given as one; who computes the
        `invariant_crc` (`sender`, `hardware`); `timestamps` (`none`, `kernel`, `hardware`);
        `queues` of the interface that are served, 0 if the kernel's stack serves them; `xdp_mode`
        (`native`, `generic`, or empty without a program); and whether it `has_segmentation`,
        `has_coalescing`, `has_ecn`, `has_identification`, `has_zero_copy` and
        `carries_ethernet_header`. RDMA devices have `device`, its name, and `port_rate_bps` too.
        """
    def send(self, frames: Sequence[bytes]) -> int:
        """Queue RoCEv2 frames and send what the kernel takes; returns how many were accepted.

        What was accepted and not sent goes with the next call. Raises `ValueError` for a frame that
        cannot be sent; then none is.
        """
    def receive(self, limit: int) -> list[tuple[bytes, int | None]]:
        """Return up to `limit` frames that have arrived; never waits.

        Each with the CLOCK_MONOTONIC nanoseconds of its arrival, None if nobody took the time.
        """
    def counters(self) -> dict[str, int]:
        """Return totals of frames, bytes, bursts and errors."""
    def close(self) -> None:
        """Close it; a second call has no effect."""

class FluidEmulation:
    """A whole job in virtual time with flows that share links max-min fairly instead of packets.

    What a message, a link and a queue pair are there is told by `dataplane/src/fluid/mod.rs`;
    bandwidth is shared anew after `deferral_ratio` of the time of the message that makes it
    necessary. Raises `ConfigError` when the configuration or a program cannot be executed.
    """

    def __init__(
        self, config_json: str, programs: Sequence[Program], deferral_ratio: float = 0.01
    ) -> None: ...
    def advance(self, until_ps: int | None = None, max_events: int = ...) -> bool:
        """Do as `Emulation.advance`; sharing bandwidth counts as an event for each flow seen."""
    @property
    def now_ps(self) -> int:
        """Emulated time in picoseconds."""
    @property
    def is_done(self) -> bool:
        """Whether every operation is complete."""
    def progress(self) -> dict[str, int]:
        """Return what `Emulation.progress` returns."""
    def snapshot(self) -> dict[str, Any]:
        """Return the totals of `Emulation.snapshot` but `frames_delivered`, and `nics`."""
    def completed(self) -> dict[str, Any]:
        """Return what `Emulation.completed` returns."""
    def blocked(self, limit: int) -> list[dict[str, Any]]:
        """Return what `Emulation.blocked` returns; `received_bytes` is what has left the sender."""
    def records(self) -> dict[str, Any]:
        """Return tables of `Emulation.records`.

        `ops`, `links`, `flow_links`, `link_events` and `counters`. What a flow does not have is
        absent: marks, retransmissions and notifications of operations, pauses of links, queues,
        rates of queue pairs, failures.
        """

class WallEmulation:
    """Some nodes of a job under the wall clock, slower than emulated time by `time_dilation`.

    `local_nodes` are the names of the NICs and switches that this process carries, `programs` those
    of its ranks; others are only checked. Every link is a pair of wire
    ends, `<link>/0` at its end a and `<link>/1` at end b: one UDP socket each, one Ethernet frame
    per datagram. Raises `ConfigError`, and `RuntimeError` for a call at the wrong moment.

    With `ports_json`, an object of `Port` descriptions by name of the NIC, the local nodes are
    NICs of a real network: `bind` opens their ports and returns nothing, `connect` concerns RDMA
    devices alone, and the delays of the links are the network's own.
    """

    def __init__(
        self,
        config_json: str,
        programs: Sequence[Program],
        local_nodes: Sequence[str],
        time_dilation: int,
        bind_address: str = "127.0.0.1",
        ports_json: str | None = None,
    ) -> None: ...
    def bind(self, fixed_ports: Mapping[str, int] | None = None) -> dict[str, int]:
        """Open the local wire ends, on the ports given or on free ones.

        Raises `WireError`, and `PortError` for ports.

        Returns wire end -> UDP port.
        """
    def device_ends(self) -> str:
        """Return what peers must know of the local NICs that RDMA devices carry, once bound.

        A JSON object by name of the NIC: `memory_address`, `remote_key`, `memory_bytes`, and
        `queue_pairs`: by name of the other NIC, the numbers in the order of the plan.
        """
    def connect(
        self, peers: Mapping[str, tuple[str, int]], devices_json: str | None = None
    ) -> None:
        """Name address and port of the opposite end of every local wire end.

        With `devices_json`, also what `device_ends` returned for NICs of the job that RDMA devices
        carry, here or elsewhere. Raises `PortError` if a queue pair can't be connected.
        """
    def start(self, start_monotonic_ns: int) -> None:
        """Begin in a thread of its own: emulated time 0 is that CLOCK_MONOTONIC instant."""
    def stop(self) -> None:
        """Ask the loop to stop. It never stops by itself: others may need an acknowledgement."""
    def join(self, timeout_s: float) -> bool:
        """Wait until the loop has stopped; False if it has not in time."""
    @property
    def is_running(self) -> bool:
        """Whether the loop runs."""
    def snapshot(self) -> dict[str, Any]:
        """Return the totals of `Emulation.snapshot`, at most a tenth of a second old.

        Rows of nodes and links of other processes are zero, so that the tables of all processes
        add up. `links` has two columns more where an emulated fabric of at most 256 NICs counts
        its flows: `flows` that crossed the direction, and `expected_bytes`, what routes and hash
        lead over it of what the NICs have sent, a little late. Also
        `lateness_p99_ns` and `late_frames`.
        """
    def completed(self) -> dict[str, Any]:
        """See `Emulation.completed`."""
    def moments(self) -> list[tuple[int, int]]:
        """Return the moments of events of links that have come here since the last call.

        Index of the event and emulated ps: the start of the first, or the end of the last of the
        operations here that it waits for. Empty where the whole job is carried.
        """
    def order_event(self, event: int, base_ps: int) -> None:
        """Have an event happen whose moment has come; its changes are counted from `base_ps`.

        Those that are due already happen at once. Each event is ordered once; later orders and
        those of unknown events change nothing.
        """
    def blocked(self, limit: int) -> list[dict[str, Any]]:
        """See `Emulation.blocked`."""
    def records(self) -> dict[str, Any]:
        """Return the tables of `Emulation.records` for the local nodes; only after the end.

        `counters` has a table `wires` more, or `ports`; where RDMA devices carry NICs, `adapters`
        and `adapter_counters` (growth of the kernel's counters of device and port, by name), and
        a table `adapter_series` has the latter over time.
        """
    def ports(self) -> dict[str, dict[str, Any]]:
        """Return what the open port of each NIC can do, with its `driver` and `interface`.

        See `Port.capabilities`; empty where the fabric is emulated. Raises `RuntimeError` while it
        runs.
        """
    def lateness(self) -> dict[str, int]:
        """Return how late events were handled and frames came, in wall nanoseconds.

        Of events: `events`, `mean_ns`, `p50_ns`, `p90_ns`, `p99_ns`, `p999_ns` (each up to an
        eighth too large) and `max_ns`. A frame is sent when its transmission begins and is late
        only if it comes after its last bit should have: `frames`, `late_frames`, and of all frames
        `frame_p999_ns` and `frame_max_ns`.
        """

def loopback_datagrams_per_s(datagram_bytes: int, seconds: float) -> float:
    """Measure how many datagrams per second loopback carries between two threads.

    They do nothing but `sendmmsg` and `recvmmsg`: the yardstick for wires.
    """

def pump_ports(
    from_json: str,
    to_json: str,
    payload_bytes: int,
    seconds: float,
    processors: tuple[int, int],
) -> dict[str, float]:
    """Measure what one port carries to another with nothing else to do: the cost of a driver.

    The descriptions are those of `Port`. A thread on the first of two processors sends one prepared
    frame again and again, another on the second takes what comes; nothing is encoded or decoded.
    Returns `sent_frames`, `received_frames`, `sending_s`, `receiving_s`, `sender_processor_s` and
    `receiver_processor_s`. Raises `PortError`.
    """

def send_paced_datagrams(port: int, datagram_bytes: int, interval_ns: int, count: int) -> None:
    """Send datagrams to a port of loopback, one each `interval_ns`: the yardstick for pacing.

    The loop does nothing but watch the clock and send.
    """

class ArrivalLog:
    """A socket on loopback that notes when datagrams arrive, and does nothing with them.

    The kernel takes the time while the sender hands a datagram over, so it is that of departure.
    """

    def __init__(self) -> None: ...
    @property
    def port(self) -> int:
        """The UDP port that it is bound to."""
    def stop(self) -> tuple[NDArray[np.uint64], int]:
        """Stop, and return CLOCK_REALTIME of each arrival in ns, and how many were dropped."""

def encode_roce(
    *,
    opcode: int = 0x04,
    source_mac: bytes = ...,
    destination_mac: bytes = ...,
    source_address: str = ...,
    destination_address: str = ...,
    source_port: int = 0xC000,
    dscp: int = 0,
    ecn: int = 0,
    ttl: int = 64,
    identification: int = 0,
    solicited: bool = False,
    migration_request: bool = False,
    fecn: bool = False,
    becn: bool = False,
    partition_key: int = 0xFFFF,
    destination_qp: int = 0,
    ack_request: bool = False,
    psn: int = 0,
    virtual_address: int = 0,
    remote_key: int = 0,
    length_bytes: int = 0,
    immediate: int = 0,
    syndrome: int = 0,
    msn: int = 0,
    payload: bytes = b"",
) -> bytes:
    """Encode a RoCEv2 packet as an Ethernet frame without FCS, ICRC included.

    Headers that the opcode does not have are left out. Raises `ValueError` for a field out of
    range, `TypeError` for an unknown one.
    """

def encode_pause(*, source_mac: bytes, class_enable: int, quanta: Sequence[int]) -> bytes:
    """Encode an IEEE 802.1Qbb pause frame: `quanta[n]` for each priority n of the 8-bit mask."""

def decode_roce(frame: bytes) -> dict[str, Any]:
    """Decode an Ethernet frame without FCS and verify its ICRC.

    The keys are the keywords of `encode_roce` that the opcode has, without the MAC addresses; or
    those of `encode_pause`. Raises `ValueError` that says what is wrong.
    """

def icrc(ip_packet: bytes) -> int:
    """ICRC of a RoCEv2 packet over IPv4 or IPv6, from the IP header on and without the ICRC.

    It is appended least significant byte first. Raises `ValueError` for anything else.
    """

def roce_opcodes() -> dict[int, str]:
    """Names of the opcodes that endpoints speak."""

def payload_pattern(offset_bytes: int, length_bytes: int) -> bytes:
    """Payload of every message that an endpoint makes up, from `offset_bytes` on."""

class Courier:
    """Payloads over one connection of an RDMA device: WRITEs of a packet with immediate data.

    Nothing blocks but `connect`. Raises `PortError` that says what to load, grant or install.
    """

    def __init__(self, address: str, interface: str | None = None, mtu_bytes: int = 1024) -> None:
        """Open the device that has an IPv4 address, on an interface if one is named."""
    def local(self) -> tuple[str, int, int, int]:
        """What the other end must know: address, queue pair, memory address, key."""
    def connect(self, address: str, qp: int, memory_address: int, remote_key: int) -> None:
        """Connect with what the other end's `local` says."""
    @property
    def max_payload_bytes(self) -> int:
        """Longest payload."""
    def send(self, payload: bytes, immediate: int) -> bool:
        """Send a payload; False if too many are under way, it is too long, or after a failure."""
    def receive(self) -> tuple[bytes, int] | None:
        """Take the oldest payload that has arrived, with its immediate data."""
    @property
    def failure(self) -> str | None:
        """Why the connection ended; None while it lives."""
    def close(self) -> None:
        """Give the device back."""

class Endpoint:
    """One end of a RoCEv2 reliable connection, without socket and clock.

    `transport_json` and `classes_json` are the objects `transport` and `classes` of a job's
    configuration; queue pair numbers and packet sequence numbers have 24 bits. What it sends is
    `payload_pattern`: of a SEND or WRITE from 0 on, of its memory at an address from that number
    on. What arrives is compared with the same (`payload_mismatches`): a WRITE to an address, and a
    READ of `offset_bytes`, from that number on. Times are picoseconds of any clock that never goes
    back. Raises `ValueError` for a document or number out of range.
    """

    def __init__(
        self,
        *,
        transport_json: str,
        classes_json: str,
        local_address: str,
        remote_address: str,
        local_mac: bytes,
        remote_mac: bytes,
        local_qp: int,
        remote_qp: int,
        send_psn: int,
        receive_psn: int,
    ) -> None: ...
    def set_remote_memory(self, virtual_address: int, remote_key: int) -> None:
        """Set where the peer's memory lies; at first it starts at address 0 with key 0."""
    def post_write(self, id: int, size_bytes: int, immediate: int | None = None) -> None:
        """Post an RDMA WRITE to the start of the peer's memory."""
    def post_send(self, id: int, size_bytes: int, immediate: int | None = None) -> None:
        """Post a SEND."""
    def post_read(self, id: int, size_bytes: int, offset_bytes: int = 0) -> None:
        """Post an RDMA READ from `offset_bytes` of the peer's memory on."""
    def limit_receives(self, posted: int, timer: int) -> None:
        """From now on SENDs and immediate data need a receive, of which there are `posted`.

        A peer of one without is told to wait as the 5-bit code `timer` says.
        """
    def post_receive(self) -> None:
        """Post one more receive."""
    def handle_frame(self, now_ps: int, frame: bytes) -> None:
        """Take an Ethernet frame without FCS; what is damaged or not for it is counted only."""
    def poll_frames(self, now_ps: int, max_frames: int = 64) -> list[bytes]:
        """Take the frames to send now, acknowledgements first."""
    def poll_timeout(self) -> int | None:
        """When `handle_timeout` wants to be called; any other call may change it."""
    def handle_timeout(self, now_ps: int) -> None:
        """Fire the timers that are due."""
    def events(self) -> list[dict[str, Any]]:
        """Take what happened since the last call, oldest first.

        `event` is `send_completed`, `read_completed`, `write_received` (with immediate data),
        `send_received`, `sequence_error`, `timed_out` or `failed`.
        """
    @property
    def has_unacknowledged(self) -> bool:
        """Whether a posted request is not complete."""
    def counters(self) -> dict[str, int]:
        """Totals: those of a queue pair, and the frames dropped before it."""

def write_capture(
    path: str | PathLike[str],
    interfaces: Sequence[str],
    *,
    time_ps: NDArray[np.uint64],
    interface: NDArray[np.uint32],
    length_bytes: NDArray[np.uint32],
    frames: NDArray[np.uint8],
    max_packets: int,
) -> int:
    """Write Ethernet frames without FCS as pcapng, in order of time; return how many.

    Frame i came to `interfaces[interface[i]]` at `time_ps[i]`, which the file holds in whole
    nanoseconds; `frames` has the bytes of all, one after the other. The earliest `max_packets` are
    written. Raises `OSError`, and `ValueError` for columns that don't fit.
    """
