"""The messages of the control protocol: strict models, size-limited, one decoder.

A message from the broker is untrusted: `decode` either returns a legal value or raises
`MalformedMessage`, which the receiver counts and drops. Arrays travel in `columns`, not here.
"""

from collections.abc import Collection
from enum import StrEnum
from typing import Annotated, Final, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from emulator.control.topics import NAME_PATTERN

__all__ = [
    "MAX_MESSAGE_BYTES",
    "ActualState",
    "AgentHeartbeat",
    "BaseMessage",
    "BlobReference",
    "BlockedOperation",
    "ControllerHeartbeat",
    "DesiredState",
    "DeviceEnd",
    "EventMoment",
    "EventOrder",
    "MalformedMessage",
    "Phase",
    "Presence",
    "State",
    "WireAddress",
    "decode",
    "encode",
]

MAX_MESSAGE_BYTES: Final = 1 << 20
"""Largest payload that is looked at; larger ones are dropped. Bulk goes by HTTP."""

_INSTANT_LIMIT: Final = 1 << 63
_MOMENT_LIMIT: Final = _INSTANT_LIMIT >> 1
"""Events are ordered for a while after their moments, and that is an instant too."""

Name = Annotated[str, Field(pattern=rf"^{NAME_PATTERN}$")]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Nanoseconds = Annotated[int, Field(ge=0, lt=_INSTANT_LIMIT)]


def _printable(text: str) -> str:
    """Return a text that a terminal only shows: another host's words may hold commands to it."""
    return "".join(character if character.isprintable() else " " for character in text)


Text = Annotated[str, Field(max_length=4096), AfterValidator(_printable)]
WireEnd = Annotated[str, Field(max_length=256, pattern=r"^.+/[01]$")]
NodeName = Annotated[str, Field(min_length=1, max_length=256)]
QueuePairNumber = Annotated[int, Field(ge=0, lt=1 << 24)]
Port = Annotated[int, Field(ge=1, le=65535)]


class MalformedMessage(ValueError):  # noqa: N818
    """A payload that is not a legal message; the receiver counts and drops it."""


class Phase(StrEnum):
    """How far the controller wants an agent to be."""

    JOIN = "join"
    PREPARE = "prepare"
    CONNECT = "connect"
    START = "start"
    STOP = "stop"
    RELEASE = "release"


class State(StrEnum):
    """How far an agent is; the order of the definitions is the order of a run."""

    IDLE = "idle"
    JOINED = "joined"
    PREPARED = "prepared"
    CONNECTED = "connected"
    RUNNING = "running"
    STOPPED = "stopped"
    FAILED = "failed"


class BaseMessage(BaseModel):
    """What all messages have in common: strict types, no unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class BlobReference(BaseMessage):
    """Bulk data that is fetched by HTTP and checked against its digest."""

    url: Annotated[str, Field(max_length=512, pattern=r"^http://")]
    """Where it is served."""
    sha256: Digest
    """SHA-256 of the bytes, hexadecimal."""
    size_bytes: Annotated[int, Field(ge=0, lt=_INSTANT_LIMIT)]
    """Length of the bytes."""


class WireAddress(BaseMessage):
    """UDP address of the opposite end of a wire."""

    address: Annotated[str, Field(max_length=45)]
    """IP address, literal."""
    port: Port
    """UDP port."""


class DeviceEnd(BaseMessage):
    """What peers must know of a NIC whose numbers and memory an RDMA device chooses."""

    memory_address: Annotated[int, Field(ge=0, lt=1 << 64)]
    """Where WRITEs to it begin."""
    remote_key: Annotated[int, Field(ge=0, lt=1 << 32)]
    """Key of that memory."""
    memory_bytes: Annotated[int, Field(ge=1, lt=1 << 32)]
    """Longest WRITE."""
    queue_pairs: dict[NodeName, list[QueuePairNumber]]
    """NIC at the other end -> numbers of the queue pairs towards it, in the order of the plan."""

    def towards(self, nics: Collection[str]) -> "DeviceEnd":
        """Return what some NICs must know of it."""
        numbers = {nic: self.queue_pairs[nic] for nic in nics if nic in self.queue_pairs}
        return self.model_copy(update={"queue_pairs": numbers})


class EventMoment(BaseMessage):
    """The moment of an event of links, as far as the agent carries its operations."""

    event: Annotated[int, Field(ge=0, lt=1 << 32)]
    """Number of the event in the job."""
    time_ps: Annotated[int, Field(ge=0, lt=_MOMENT_LIMIT)]
    """Emulated time of the first start, or of the last end."""


class EventOrder(BaseMessage):
    """An event of links that happens, since its moment has come."""

    event: Annotated[int, Field(ge=0, lt=1 << 32)]
    """Number of the event in the job."""
    base_ps: Annotated[int, Field(ge=0, lt=_INSTANT_LIMIT)]
    """Emulated time from which its changes are counted."""


class DesiredState(BaseMessage):
    """What one agent shall be in for one run; later phases repeat the facts of earlier ones."""

    revision: Annotated[int, Field(ge=1, lt=_INSTANT_LIMIT)]
    """Rises with every change; an older revision than the last seen is ignored."""
    phase: Annotated[Phase, Field(strict=False)]
    """How far to go."""
    job: BlobReference | None = None
    """From `prepare` on: configuration and programs of the agent's nodes."""
    peers: dict[WireEnd, WireAddress] = {}
    """From `connect` on: the opposite end of every wire end that the agent carries."""
    devices: dict[NodeName, DeviceEnd] = {}
    """From `connect` on: NIC that an RDMA device carries -> what the agent's own must know."""
    start_realtime_ns: Nanoseconds | None = None
    """From `start` on: emulated time 0 on the agent's own CLOCK_REALTIME."""
    records_url: Annotated[str, Field(max_length=512, pattern=r"^http://")] | None = None
    """Where the records are put when the agent stops."""
    event_orders: Annotated[list[EventOrder], Field(max_length=4096)] = []
    """While traffic flows: events of links whose moments have come somewhere."""
    token: Annotated[str, Field(max_length=128, repr=False)] = ""
    """Secret of the run that HTTP requests carry; never logged."""


class BlockedOperation(BaseMessage):
    """An operation that has begun or is ready and does not complete."""

    rank: int
    """Rank that waits."""
    op: int
    """Index in the rank's program."""
    kind: Annotated[str, Field(max_length=32), AfterValidator(_printable)]
    """send, recv, delay or join."""
    peer: int
    """Rank of the other side."""
    detail: Annotated[str, Field(max_length=512), AfterValidator(_printable)] = ""
    """What it waits for, in words."""


class ActualState(BaseMessage):
    """What one agent is in for one run."""

    incarnation: Digest
    """Random per agent process: a restarted agent is not the one that joined."""
    revision: Annotated[int, Field(ge=0, lt=_INSTANT_LIMIT)]
    """Revision of the desired state that this answers."""
    state: Annotated[State, Field(strict=False)]
    """How far the agent is."""
    version: Annotated[str, Field(max_length=64), AfterValidator(_printable)] = ""
    """Version of the agent's rankwire; a controller of another one ends the run."""
    reason: Text = ""
    """Why, for `failed` and for a stop that the controller did not ask for."""
    address: Annotated[str, Field(max_length=45)] = "127.0.0.1"
    """IP address on which the agent's wires receive."""
    ports: dict[WireEnd, Port] = {}
    """From `prepared` on: UDP port of every wire end that the agent carries."""
    devices: dict[NodeName, DeviceEnd] = {}
    """From `prepared` on: NIC that an RDMA device of this host carries -> what peers must know."""
    records_sha256: Digest | None = None
    """After `stopped`: digest of the records that were put, None if there are none."""
    moments: Annotated[list[EventMoment], Field(max_length=4096)] = []
    """While traffic flows: moments of events of links that have come here."""
    blocked: Annotated[list[BlockedOperation], Field(max_length=256)] = []
    """After `stopped`: operations that had not completed, a selection."""


class ControllerHeartbeat(BaseMessage):
    """The controller is alive; also one half of a clock comparison."""

    sequence: Annotated[int, Field(ge=0, lt=_INSTANT_LIMIT)]
    """Number of the heartbeat."""
    sent_realtime_ns: Nanoseconds
    """CLOCK_REALTIME of the controller when it was sent."""
    gone: bool = False
    """Set by the last will and at the orderly end: no more heartbeats will come."""


class AgentHeartbeat(BaseMessage):
    """The answer to one heartbeat of the controller; the other half of a clock comparison."""

    incarnation: Digest
    """See `ActualState`."""
    sequence: Annotated[int, Field(ge=0, lt=_INSTANT_LIMIT)]
    """The heartbeat that is answered."""
    controller_sent_realtime_ns: Nanoseconds
    """The controller's instant, as received."""
    received_realtime_ns: Nanoseconds
    """CLOCK_REALTIME of the agent at arrival."""
    sent_realtime_ns: Nanoseconds
    """CLOCK_REALTIME of the agent when this was sent."""
    dropped_messages: Annotated[int, Field(ge=0)] = 0
    """Malformed messages that the agent dropped so far."""
    clock_steps: Annotated[int, Field(ge=0, lt=_INSTANT_LIMIT)] = 0
    """Times that the agent's CLOCK_REALTIME was set since it joined the run."""
    clock_set_ns: Annotated[int, Field(gt=-_INSTANT_LIMIT, lt=_INSTANT_LIMIT)] = 0
    """By how much, all together: new less old time."""


class Presence(BaseMessage):
    """Whether an agent is connected to the broker."""

    incarnation: Digest
    """See `ActualState`."""
    presence: Literal["online", "lost"]
    """`lost` is the last will."""


Message = TypeVar("Message", bound=BaseMessage)


def encode(message: BaseMessage) -> bytes:
    """Return the JSON payload of a message; defaults are left out."""
    return message.model_dump_json(exclude_defaults=True).encode()


def decode(model: type[Message], payload: bytes) -> Message:
    """Return the message in a payload or raise `MalformedMessage`; nothing else is raised."""
    if len(payload) > MAX_MESSAGE_BYTES:
        raise MalformedMessage(f"{len(payload)} bytes, at most {MAX_MESSAGE_BYTES} allowed")
    try:
        return model.model_validate_json(payload)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise MalformedMessage(f"{model.__name__} {place}: {first['msg']}") from error
