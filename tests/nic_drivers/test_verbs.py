"""What only the driver `verbs` promises, with a connection that stands for a device's."""

import pytest

import dataplane
from nic_drivers import DriverError
from nic_drivers.verbs import VerbsDriver, VerbsEnd, VerbsOptions

PEER = VerbsEnd("198.18.0.2", qp=17, memory_address=4096, remote_key=7)


class Connection:
    """A connection that takes and gives what it is told to."""

    max_payload_bytes = 1024

    def __init__(self, address: str, *_: object, **__: object) -> None:
        self.address = address
        self.failure: str | None = None
        self.arrived: list[tuple[bytes, int]] = []

    def local(self) -> tuple[str, int, int, int]:
        """What the other end must know."""
        return self.address, 1, 0, 0

    def connect(self, *_: object) -> None:
        """Any other end will do."""

    def send(self, *_: object) -> bool:
        """Take everything while it lives."""
        return self.failure is None

    def receive(self) -> tuple[bytes, int] | None:
        """Give what was put here."""
        return self.arrived.pop(0) if self.arrived else None


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> VerbsDriver:
    monkeypatch.setattr(dataplane, "Courier", Connection)
    return VerbsDriver(VerbsOptions("198.18.0.1", mtu_bytes=1024))


def frame() -> bytes:
    return dataplane.encode_roce(
        opcode=0x0B,
        source_address="198.18.0.1",
        destination_address="198.18.0.2",
        length_bytes=4,
        immediate=5,
        payload=b"data",
    )


def test_without_another_end_nothing_is_sent(driver: VerbsDriver) -> None:
    """It says what is missing."""
    with pytest.raises(DriverError, match="name one with connect"):
        driver.send_batch([frame()])


def test_a_connection_that_has_ended_is_told(driver: VerbsDriver) -> None:
    """A sender that is merely told to wait would wait forever; what has arrived is handed out."""
    driver.connect(PEER)
    assert driver.send_batch([frame(), frame()]) == 2
    connection = driver._courier
    connection.arrived, connection.failure = [(b"data", 5)], "no acknowledgement after all retries"
    with pytest.raises(DriverError, match="no acknowledgement after all retries; open both ends"):
        driver.send_batch([frame()])
    assert len(driver.receive_batch(8)) == 1
    with pytest.raises(DriverError, match="has ended"):
        driver.receive_batch(8)
    assert driver.counters().sent_frames == 2
