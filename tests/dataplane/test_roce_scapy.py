"""Frames of the dataplane, read and written by two other implementations: scapy and tshark."""

import json
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dataplane

scapy_roce = pytest.importorskip("scapy.contrib.roce", reason="scapy is not installed")

from scapy.contrib.mac_control import MACControlClassBasedFlowControl  # noqa: E402
from scapy.layers.inet import IP, UDP  # noqa: E402
from scapy.layers.l2 import Ether  # noqa: E402

MACS = {
    "source_mac": bytes.fromhex("020000000001"),
    "destination_mac": bytes.fromhex("020000000002"),
}
ADDRESSES = {"source_address": "10.0.0.1", "destination_address": "10.0.0.2"}
OPCODES = dataplane.roce_opcodes()
ACKNOWLEDGE = 0x11
CNP = 0x81
HAS_RETH = {0x06, 0x0A, 0x0B, 0x0C}
HAS_IMMEDIATE = {0x03, 0x05, 0x09, 0x0B}
HAS_AETH = {0x0D, 0x0F, 0x10, 0x11}
CARRIES_PAYLOAD = set(range(0x11)) - {0x0C}

bits_24 = st.integers(0, 2**24 - 1)
bits_32 = st.integers(0, 2**32 - 1)


@st.composite
def packets(draw: st.DrawFn) -> dict[str, Any]:
    """Fields of a packet, only those that its opcode has."""
    opcode = draw(st.sampled_from(sorted(OPCODES)))
    fields: dict[str, Any] = {
        "opcode": opcode,
        "source_port": draw(st.integers(0, 65535)),
        "dscp": draw(st.integers(0, 63)),
        "ecn": draw(st.integers(0, 3)),
        "ttl": draw(st.integers(0, 255)),
        "identification": draw(st.integers(0, 65535)),
        "partition_key": draw(st.integers(0, 65535)),
        "destination_qp": draw(bits_24),
        "psn": draw(bits_24),
        "payload": draw(st.binary(max_size=300)) if opcode in CARRIES_PAYLOAD else b"",
    }
    for flag in ("solicited", "migration_request", "fecn", "becn", "ack_request"):
        fields[flag] = draw(st.booleans())
    if opcode in HAS_RETH:
        fields["virtual_address"] = draw(st.integers(0, 2**64 - 1))
        fields |= {"remote_key": draw(bits_32), "length_bytes": draw(bits_32)}
    if opcode in HAS_IMMEDIATE:
        fields["immediate"] = draw(bits_32)
    if opcode in HAS_AETH:
        fields |= {"syndrome": draw(st.integers(0, 255)), "msn": draw(bits_24)}
    return fields


def extension_headers(fields: dict[str, Any]) -> bytes:
    """The headers behind the BTH, packed by hand: scapy has no RETH and no immediate data."""
    headers = b""
    if "virtual_address" in fields:
        values = (fields["virtual_address"], fields["remote_key"], fields["length_bytes"])
        headers += struct.pack(">QII", *values)
    if "immediate" in fields:
        headers += struct.pack(">I", fields["immediate"])
    if "syndrome" in fields:
        headers += struct.pack(">I", fields["syndrome"] << 24 | fields["msn"])
    return headers + bytes(16 if fields["opcode"] == CNP else 0)


def scapy_frame(fields: dict[str, Any]) -> bytes:
    """The same packet built by scapy, with the ICRC that scapy computes."""
    payload = fields["payload"]
    pad_bytes = -len(payload) % 4
    ip = IP(
        src=ADDRESSES["source_address"],
        dst=ADDRESSES["destination_address"],
        tos=fields["dscp"] << 2 | fields["ecn"],
        ttl=fields["ttl"],
        id=fields["identification"],
        flags="DF",
    )
    bth = scapy_roce.BTH(
        opcode=fields["opcode"],
        solicited=fields["solicited"],
        migreq=fields["migration_request"],
        padcount=pad_bytes,
        pkey=fields["partition_key"],
        fecn=fields["fecn"],
        becn=fields["becn"],
        dqpn=fields["destination_qp"],
        ackreq=fields["ack_request"],
        psn=fields["psn"],
    )
    udp = UDP(sport=fields["source_port"], dport=4791, chksum=0)
    body = extension_headers(fields) + payload + bytes(pad_bytes)
    ether = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02", type=0x0800)
    return bytes(ether / ip / udp / bth / body)


@given(packets())
def test_scapy_builds_the_same_bytes_for_every_opcode(fields: dict[str, Any]) -> None:
    assert dataplane.encode_roce(**MACS, **ADDRESSES, **fields) == scapy_frame(fields)


@given(packets())
def test_what_scapy_builds_is_decoded_to_the_same_fields(fields: dict[str, Any]) -> None:
    assert dataplane.decode_roce(scapy_frame(fields)) == fields | ADDRESSES


@given(packets())
def test_the_icrc_is_scapys(fields: dict[str, Any]) -> None:
    frame = scapy_frame(fields)
    assert dataplane.icrc(frame[14:-4]).to_bytes(4, "little") == frame[-4:]


def test_scapy_reads_an_acknowledgement() -> None:
    frame = Ether(
        dataplane.encode_roce(
            opcode=ACKNOWLEDGE, psn=0x103, syndrome=0x60, msn=7, destination_qp=17
        )
    )
    bth, aeth = frame[scapy_roce.BTH], frame[scapy_roce.AETH]
    assert (bth.psn, bth.dqpn, aeth.syndrome, aeth.msn) == (0x103, 17, 0x60, 7)


def test_a_congestion_notification_is_scapys() -> None:
    ours = dataplane.encode_roce(**MACS, **ADDRESSES, opcode=CNP, becn=True, destination_qp=17)
    ip = IP(src="10.0.0.1", dst="10.0.0.2", id=0, flags="DF")
    ether = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
    theirs = ether / ip / UDP(sport=0xC000, dport=4791, chksum=0) / scapy_roce.cnp(17)
    assert ours == bytes(theirs)


def test_scapy_reads_a_pause_frame() -> None:
    quanta = [0, 11, 22, 33, 44, 55, 66, 65535]
    encoded = dataplane.encode_pause(
        source_mac=MACS["source_mac"], class_enable=0b1000_0010, quanta=quanta
    )
    frame = Ether(encoded)
    pause = frame[MACControlClassBasedFlowControl]
    assert (frame.dst, frame.src) == ("01:80:c2:00:00:01", "02:00:00:00:00:01")
    assert [getattr(pause, f"c{n}_enabled") for n in range(8)] == [0, 1, 0, 0, 0, 0, 0, 1]
    assert [getattr(pause, f"c{n}_pause_time") for n in range(8)] == quanta
    assert dataplane.decode_roce(encoded)["quanta"] == quanta


def test_scapys_pause_frame_is_decoded() -> None:
    pause = MACControlClassBasedFlowControl(c3_enabled=1, c3_pause_time=65535)
    frame = Ether(src="02:00:00:00:00:01", dst="01:80:c2:00:00:01") / pause
    assert dataplane.decode_roce(bytes(frame)) == {
        "source_mac": MACS["source_mac"],
        "class_enable": 8,
        "quanta": [0, 0, 0, 65535, 0, 0, 0, 0],
    }


def test_a_damaged_frame_is_refused_with_both_checksums() -> None:
    frame = bytearray(dataplane.encode_roce(opcode=4, payload=b"hello"))
    frame[-5] ^= 1
    with pytest.raises(ValueError, match=r"ICRC 0x[0-9a-f]{8}, computed 0x"):
        dataplane.decode_roce(bytes(frame))


def test_wrong_fields_are_refused() -> None:
    with pytest.raises(ValueError, match="psn 16777216 is above 16777215"):
        dataplane.encode_roce(psn=2**24)
    with pytest.raises(ValueError, match="opcode 0x24 is not spoken"):
        dataplane.encode_roce(opcode=0x24)
    with pytest.raises(TypeError, match="no field"):
        dataplane.encode_roce(sequence=1)  # type: ignore[call-arg]


def write_capture(path: Path, frames: list[bytes]) -> None:
    """A classic pcap file of Ethernet frames. Source: draft-ietf-opsawg-pcap."""
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for number, frame in enumerate(frames):
            file.write(struct.pack("<IIII", 0, number, len(frame), len(frame)) + frame)


def dissect(path: Path, *names: str) -> list[dict[str, list[str]]]:
    """The named fields of every frame, as tshark reads them."""
    tshark = shutil.which("tshark")
    if tshark is None:
        pytest.skip("tshark is not installed")
    command = [tshark, "-r", str(path), "-T", "json"]
    for name in names:
        command += ["-e", name]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [frame["_source"]["layers"] for frame in json.loads(output)]


def test_opcodes_are_named_as_scapy_names_them() -> None:
    theirs = scapy_roce.BTH.fields_desc[0].i2s
    assert {code: theirs[code] for code in OPCODES} == OPCODES


def test_tshark_names_every_opcode_that_it_knows(tmp_path: Path) -> None:
    known = {code: name for code, name in OPCODES.items() if code != CNP}
    frames = [
        dataplane.encode_roce(
            **MACS,
            **ADDRESSES,
            opcode=code,
            destination_qp=0x12,
            payload=bytes(64) if code in CARRIES_PAYLOAD else b"",
        )
        for code in known
    ]
    write_capture(tmp_path / "opcodes.pcap", frames)
    dissected = dissect(tmp_path / "opcodes.pcap", "_ws.col.Info")
    # Wireshark writes "RC RDMA Write Last Immediate QP=0x000012".
    read = [frame["_ws.col.Info"][0].partition(" QP=")[0].upper() for frame in dissected]
    assert read == [name.replace("_WITH_", "_").replace("_", " ") for name in known.values()]


def test_tshark_reads_every_field_of_a_write(tmp_path: Path) -> None:
    fields: dict[str, Any] = {
        "opcode": 0x0B,
        "psn": 0x123456,
        "destination_qp": 0xABCDE,
        "virtual_address": 0x7F0000002000,
        "remote_key": 0x1234,
        "length_bytes": 5,
        "immediate": 2500,
        "payload": b"hello",
        "ack_request": True,
    }
    frame = dataplane.encode_roce(**MACS, **ADDRESSES, **fields)
    write_capture(tmp_path / "write.pcap", [frame])
    (read,) = dissect(
        tmp_path / "write.pcap",
        "infiniband.bth.psn",
        "infiniband.bth.destqp",
        "infiniband.bth.a",
        "infiniband.bth.padcnt",
        "infiniband.reth.va",
        "infiniband.reth.r_key",
        "infiniband.reth.dmalen",
        "infiniband.immdt",
        "infiniband.invariant.crc",
    )
    values = [value[0] for value in read.values()]
    assert [int(value, 0) for value in values[:7]] == [
        *(0x123456, 0xABCDE, 1, 3),
        *(0x7F0000002000, 0x1234, 5),
    ]
    assert int(values[7], 16) == 2500
    assert int(values[8], 0) == int.from_bytes(frame[-4:], "big")


def test_t16_tshark_reads_a_pause_frame(tmp_path: Path) -> None:
    frame = dataplane.encode_pause(
        source_mac=MACS["source_mac"], class_enable=8, quanta=[0, 0, 0, 65535, 0, 0, 0, 0]
    )
    write_capture(tmp_path / "pause.pcap", [frame])
    (read,) = dissect(tmp_path / "pause.pcap", "macc.cbfc.enbv.c3", "macc.cbfc.pause_time.c3")
    assert [value[0] for value in read.values()] == ["1", "65535"]
