"""The lab: everything that one run or prediction needs apart from the traces.

Passive data with units in the key names. Reading it from YAML is `emulator.lab.loading`, rules
across keys are `emulator.lab.checks`, its expansion into nodes and links is `emulator.lab.fabric`.
"""

import re
from typing import Annotated, Literal

from pydantic import Field, field_serializer

from emulator.lab.base import LabPart
from emulator.lab.congestion import CongestionControl, Dcqcn, NotificationPoint
from emulator.lab.events import LinkEvent
from emulator.lab.impairments import Impairment
from emulator.lab.interfaces import DriverName, Interface
from emulator.lab.namespaces import Namespaces
from emulator.lab.switches import Switches
from emulator.lab.topology import Topology
from emulator.lab.traffic_classes import TrafficClasses

__all__ = [
    "AdaptiveRetransmission",
    "Agents",
    "CollectiveRule",
    "Collectives",
    "Control",
    "Lab",
    "Placement",
    "Telemetry",
    "Transport",
]


class AdaptiveRetransmission(LabPart):
    """A retransmission timer that starts short and doubles: `time_base_ns` times a power of two.

    Source: NVIDIA "Adaptive Retransmission: Parameters Control"; 2, 4, 8 and 16 ms were observed
    (linux-rdma/perftest issue 251). It is never above `retransmission_timeout_ns`.
    """

    time_base_ns: Annotated[int, Field(ge=1_000, le=10**9)] = 4_096
    """Timeout of exponent 0."""
    initial_exponent: Annotated[int, Field(ge=0, le=31)] = 9
    """Smallest exponent of the first timeout."""
    initial_exponents: Annotated[int, Field(ge=1, le=32)] = 1
    """The first timeout's exponent is drawn from so many."""
    min_exponent: Annotated[int, Field(ge=0, le=31)] = 9
    """Smallest exponent of later timeouts."""
    max_exponent: Annotated[int, Field(ge=0, le=31)] = 12
    """Largest exponent."""
    retries_per_timeout: Annotated[int, Field(ge=1, le=100)] = 1
    """Times that a timeout is used before it doubles."""
    progress_decrease: Annotated[int, Field(ge=0, le=32)] = 32
    """How far the exponent falls when there is progress; 32 is back to the smallest."""


class Transport(LabPart):
    """RoCEv2 reliable connections."""

    mtu_bytes: Literal[256, 512, 1024, 2048, 4096] = 4096
    """Path MTU, payload bytes of a full packet."""
    qps_per_peer: Annotated[int, Field(ge=1, le=64)] = 1
    """Queue pairs per ordered pair of peers. Source: NCCL_IB_QPS_PER_CONNECTION, default 1."""
    qp_distribution: Literal["round_robin", "split", "channel"] = "round_robin"
    """With several queue pairs: whole messages, each queue pair in turn; every message in stripes
    of a multiple of 128 bytes over all; or whole messages, each channel of the collectives on a
    queue pair of its own as long as there are enough. Source: NCCL_IB_SPLIT_DATA_ON_QPS, default
    0; a connection for each channel."""
    clear_to_send: bool = False
    """A receiver writes 64 bytes to the sender when it is ready for a message, and the sender waits
    for them. Source: NCCL's IB transport does so for each receive."""
    window_packets: Annotated[int, Field(ge=1, le=2**23)] = 4096
    """Packets that may be unacknowledged on a queue pair; adapters limit by rate, so it is wide."""
    ack_every_packets: Annotated[int, Field(ge=1, le=65_536)] = 16
    """The responder acknowledges at least every so many packets; our choice."""
    ack_delay_ns: Annotated[int, Field(ge=0, le=10**12)] = 5_000
    """An acknowledgement is held back at most this long; our choice."""
    retransmission_timeout_ns: Annotated[int, Field(ge=1_000, le=10**12)] = 4_000_000
    """Time without progress before a retransmission. Source: observed 2 to 16 ms with adaptive
    retransmission (linux-rdma/perftest issue 251)."""
    retry_count: Annotated[int, Field(ge=0, le=7)] = 7
    """Timeouts without progress before a queue pair fails. Source: NCCL default 7."""
    loss_recovery: Literal["go_back_n", "selective_repeat"] = "go_back_n"
    """What is sent again after a loss: everything from it on, or only what is missing. Source: IBTA
    volume 1, section 9.7.5.1.1; Mittal et al., SIGCOMM 2018."""
    reordering_packets: Annotated[int, Field(ge=0, le=2**23)] = 0
    """With selective repeat, a packet counts as lost when one more than so many behind it has come:
    0 where paths keep the order, more where packets are sprayed. Source: the threshold of
    Mittal et al., SIGCOMM 2018."""
    adaptive_retransmission: AdaptiveRetransmission | None = None
    """The timer adapts; left out, it is constant."""


class CollectiveRule(LabPart):
    """Chooses the algorithm of some collectives; the first rule that matches holds."""

    collective: str
    """Kind of collective: all_reduce, all_gather, all_to_all, ...; a glob."""
    algorithm: str
    """Name of the algorithm, for example ring."""
    group: str = "*"
    """Only for process groups of this name; a glob."""
    node: str = "*"
    """Only for trace nodes of this name; a glob."""
    min_ranks: Annotated[int, Field(ge=1)] = 1
    """Only for groups of at least so many ranks."""
    max_ranks: Annotated[int, Field(ge=1)] | None = None
    """Only for groups of at most so many ranks."""
    min_size_bytes: Annotated[int, Field(ge=0)] = 0
    """Only for at least this size, as in nccl-tests, after scaling."""
    max_size_bytes: Annotated[int, Field(ge=0)] | None = None
    """Only for at most this size."""
    window: Annotated[int, Field(ge=1)] | None = None
    """Pairwise all-to-all: sends that may be outstanding at a rank."""
    chunk_bytes: Annotated[int, Field(ge=1)] | None = None
    """Pipelined algorithms: bytes of one chunk."""
    channels: Annotated[int, Field(ge=1, le=64)] | None = None
    """Channels that share every message; left out, as `collectives.messages` says."""
    slice_bytes: Annotated[int, Field(ge=1)] | None = None
    """Longer messages go in slices of this size; left out, as `collectives.messages` says."""
    split_matrix_file: str | None = None
    """All-to-all: JSON or CSV file of relative weights, row = source, column = destination;
    relative to the lab file."""


class Collectives(LabPart):
    """Algorithms of the collectives."""

    messages: Literal["whole", "nccl"] = "whole"
    """A step's message stays whole, or is cut as NCCL cuts it: shared out to channels, in slices of
    at most 1 MiB (broadcast and reduce 512 KiB, point-to-point 128 KiB), each forwarded as soon as
    it has arrived."""
    channels: Annotated[int, Field(ge=1, le=64)] = 2
    """Channels of NCCL's messages; fewer where one would get less than 32 KiB. Source: NCCL has two
    for each ring that a network interface can carry, and two for each peer at least."""

    rules: list[CollectiveRule] = Field(default_factory=list)
    """In order; what no rule matches has the default of its kind and size."""


class Placement(LabPart):
    """Which NIC carries which rank."""

    order: Literal["listed", "shuffled"] = "listed"
    """Ranks take the NICs as they come, or in an order that the seed decides."""
    nics: list[str] | None = None
    """NIC names in the order of ranks; replaces the order of the topology."""


class Agents(LabPart):
    """The processes that carry NICs and switches during a run."""

    count: Annotated[int, Field(ge=1, le=256)] = 1
    """Agents; nodes are spread over them, a leaf with its hosts together."""
    placement: dict[str, list[str]] | None = None
    """Agent name -> nodes that it carries, every node exactly once; replaces `count`."""
    spawn: bool = True
    """The controller starts the agents on its own machine. False: they run already
    (`rankwire agent`), are connected to the same broker, and have the names of `placement`."""


class Control(LabPart):
    """How controller and agents talk."""

    broker: Annotated[str, Field(pattern=r"^(embedded|mqtts?://[^/\s]+/?)$", repr=False)] = (
        "embedded"
    )
    """`embedded`, or the URL of an MQTT broker: mqtt://[USER:PASSWORD@]HOST:PORT, or
    mqtts:// for TLS."""
    password_file: Annotated[str, Field(min_length=1)] | None = None
    """File whose first line is the password of the broker's user, instead of one in the URL."""
    mqtt_version: Literal[5, "3.1.1"] = 5
    """Version of the protocol that a broker by URL is spoken to in: 5 or `3.1.1`."""
    http_address: Annotated[str, Field(pattern=r"^[0-9.]+$")] = "127.0.0.1"
    """Address of the controller's machine from which agents fetch jobs and to which they bring
    records."""
    agent_silence_limit_s: Annotated[float, Field(ge=1, le=600)] = 5.0
    """Wall time without an answer after which an agent counts as gone, and the run as failed.
    Longer for agents whose host may stand still for a while, as a virtual machine does. Our choice:
    twenty heartbeats."""
    event_notice_ms: Annotated[int, Field(ge=1, le=60_000)] = 250
    """Where several agents carry the job: wall time from the moment that an event of links waits
    for (`at_node`, `at_collective`) to its first change, at least. The agent that sees the moment
    tells the controller, who tells all the emulated time. Our choice: several times what a broker
    takes on a busy machine."""

    @field_serializer("broker")
    def _without_login(self, broker: str) -> str:
        """Keep user and password out of records and of what is shown."""
        return re.sub(r"//[^/]*@", "//", broker)


class Telemetry(LabPart):
    """Time series kept while a job runs."""

    sample_interval_ns: Annotated[int, Field(ge=100, le=10**12)] = 10_000
    """First sampling interval; it doubles when `max_samples` is reached."""
    max_samples: Annotated[int, Field(ge=16, le=1_000_000)] = 2_048
    """Samples kept per series."""
    flow_paths: bool = True
    """Count, for every flow, packets and bytes on each link that it crosses."""
    max_pauses: Annotated[int, Field(ge=0, le=1_000_000)] = 16_384
    """Pauses (PFC) of its neighbours that each switch keeps with their causes; later ones are
    counted."""


class Lab(LabPart):
    """One lab."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$", max_length=63)]
    """Lower case letters, digits and dashes; names run directories."""
    description: str = ""
    """What the lab is for."""
    topology: Topology
    """Nodes and links."""
    switches: Switches = Switches()
    """Settings of every switch."""
    traffic_classes: TrafficClasses = TrafficClasses()
    """Tags and priorities."""
    transport: Transport = Transport()
    """RoCEv2 reliable connections."""
    congestion_control: CongestionControl = Dcqcn(algorithm="dcqcn")
    """The senders' algorithm in every traffic class that names none."""
    notification_point: NotificationPoint = NotificationPoint()
    """The receiver's part of DCQCN."""
    collectives: Collectives = Collectives()
    """Algorithms of the collectives."""
    placement: Placement = Placement()
    """Ranks on NICs."""
    agents: Agents = Agents()
    """Processes of a run."""
    control: Control = Control()
    """Broker of a run."""
    driver: DriverName = "wire"
    """What carries the frames of a run: `wire` emulates the fabric on loopback; with others the
    network is real, and only the NICs are carried. See docs/drivers.md."""
    max_burst_packets: Annotated[int, Field(ge=1, le=64)] = 64
    """Packets that a driver gives to the kernel as one, at most, when several wait; a switch made
    of Linux marks or drops those together."""
    xdp_mode: Literal["any", "native", "generic"] = "any"
    """Where the program of `af_xdp` runs: natively if the interface's driver can, in that driver,
    or in the kernel's common receive path."""
    busy_poll_us: Annotated[int, Field(ge=0, le=1_000)] = 0
    """Microseconds that `af_xdp` polls the adapter in a call; 0 waits for interrupts."""
    interfaces: dict[str, Interface] = Field(default_factory=dict)
    """NIC -> where it is, when the network is real; a lab of namespaces knows."""
    namespaces: Namespaces | None = None
    """`rankwire lab up` builds the lab of network namespaces; left out, it does not."""
    time_dilation: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    """A run takes this many seconds per emulated second: rates are divided, timers multiplied."""
    telemetry: Telemetry = Telemetry()
    """Time series."""
    impairments: list[Impairment] = Field(default_factory=list)
    """What links do to frames on purpose: loss, damage, repetition, reordering, delay."""
    events: list[LinkEvent] = Field(default_factory=list)
    """What happens to links while the job runs: down, up, flap, another rate."""
    default_profile: str = "moe-training"
    """Profile that is used when neither a trace nor a profile is given; may have parameters:
    NAME,KEY=VALUE,... as after `--profile`."""
