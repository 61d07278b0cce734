"""Runs in the guest: queueing disciplines by ready-made requests, and packets through them.

Answers with one JSON line. Standard library only. A scenario is a list of netlink requests for the
loopback interface.
"""

import json
import re
import socket
import struct
import subprocess

PACKETS, PAYLOAD_BYTES, PORT = 120, 1000, 5000
ECT_0, CE = 2, 3


def apply(requests):
    """The kernel's error numbers, 0 for those that it took."""
    channel = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
    errors = []
    for request in requests:
        channel.send(bytes.fromhex(request))
        errors.append(-struct.unpack_from("=i", channel.recv(65536), 16)[0])
    return errors


def send_and_receive():
    """Codepoints of the packets that came through."""
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.bind(("127.0.0.1", PORT))
    receiver.setsockopt(socket.IPPROTO_IP, 13, 1)  # IP_RECVTOS
    receiver.settimeout(2)
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, ECT_0)
    for _ in range(PACKETS):
        sender.sendto(bytes(PAYLOAD_BYTES), ("127.0.0.1", PORT))
    found = []
    while len(found) < PACKETS:
        try:
            _, ancillary, _, _ = receiver.recvmsg(2000, 64)
        except TimeoutError:
            break
        found.append(ancillary[0][2][0] & 3)
    receiver.close()
    return found


def main():
    """Each scenario in turn."""
    with open("/tmp/scenarios.json", encoding="ascii") as file:  # noqa: S108
        scenarios = json.load(file)
    told = {}
    for name, requests in scenarios.items():
        errors = apply(requests)
        found = send_and_receive()
        shown = ["tc", "-s", "qdisc", "show", "dev", "lo"]
        text = subprocess.run(shown, capture_output=True, text=True, check=True).stdout
        marked = re.search(r"marked (\d+)", text)
        told[name] = {
            "errors": errors,
            "received": len(found),
            "ce": found.count(CE),
            "marked": int(marked[1]) if marked else None,
            "shown": text,
        }
        subprocess.run(["tc", "qdisc", "del", "dev", "lo", "root"], check=True)
    print("@@ " + json.dumps(told))


main()
