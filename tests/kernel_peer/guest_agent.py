"""Runs in the guest: one RC queue pair on rdma_rxe, driven by JSON lines on the serial console.

Standard library and pyverbs only.
"""

import hashlib
import socket
import time
from pathlib import Path

import guest_console
from pyverbs.addr import GID, AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.enums import (
    IBV_ACCESS_LOCAL_WRITE,
    IBV_ACCESS_REMOTE_READ,
    IBV_ACCESS_REMOTE_WRITE,
    IBV_QPT_RC,
    IBV_SEND_SIGNALED,
    IBV_WR_RDMA_READ,
    IBV_WR_RDMA_WRITE,
    IBV_WR_RDMA_WRITE_WITH_IMM,
    IBV_WR_SEND,
    IBV_WR_SEND_WITH_IMM,
)
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

OPCODES = {
    "send": IBV_WR_SEND,
    "send_with_immediate": IBV_WR_SEND_WITH_IMM,
    "write": IBV_WR_RDMA_WRITE,
    "write_with_immediate": IBV_WR_RDMA_WRITE_WITH_IMM,
    "read": IBV_WR_RDMA_READ,
}
ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ
MTU_CODES = {256: 1, 512: 2, 1024: 3, 2048: 4, 4096: 5}
COUNTERS = Path("/sys/class/infiniband/rxe0/ports/1/hw_counters")

PATTERN = Path("/tmp/pattern")  # noqa: S108 - a file system of the guest's own


class Agent:
    """The queue pair and its memory. A method's name is an operation of the host's."""

    def __init__(self):
        self.context = Context(name="rxe0")
        self.domain = PD(self.context)
        self.completions = CQ(self.context, 1024)
        self.qp = None
        self.pattern = PATTERN.read_bytes()

    def allocate(self, buffer_bytes):
        """Register memory."""
        self.memory = MR(self.domain, buffer_bytes, ACCESS)
        return {"key": self.memory.rkey, "address": self.memory.buf}

    def open(self, peer_gid, peer_qp, mtu_bytes, local_psn, peer_psn, timeout):
        """Make a new queue pair in place of the old one, and bring it to ready-to-send."""
        if self.qp is not None:
            self.qp.close()
        self._drain()
        capability = QPCap(max_send_wr=512, max_recv_wr=512, max_send_sge=1, max_recv_sge=1)
        queue = self.completions
        wanted = QPInitAttr(qp_type=IBV_QPT_RC, scq=queue, rcq=queue, cap=capability)
        self.qp = QP(self.domain, wanted)
        initial = QPAttr(port_num=1)
        initial.qp_access_flags = ACCESS
        self.qp.to_init(initial)
        attributes = QPAttr(port_num=1)
        # The IPv4 address is entry 1 of the GID table.
        route = GlobalRoute(dgid=GID(peer_gid), sgid_index=1, hop_limit=64, traffic_class=106)
        attributes.ah_attr = AHAttr(gr=route, is_global=1, port_num=1)
        attributes.dest_qp_num = peer_qp
        attributes.path_mtu = MTU_CODES[mtu_bytes]
        attributes.rq_psn = peer_psn
        attributes.sq_psn = local_psn
        attributes.timeout = timeout
        attributes.retry_cnt = 7
        attributes.rnr_retry = 7
        attributes.min_rnr_timer = 12
        attributes.max_rd_atomic = 4
        attributes.max_dest_rd_atomic = 4
        self.qp.to_rts(attributes)
        return {"qp": self.qp.qp_num}

    def _drain(self):
        """Forget completions of the queue pair before."""
        while self.completions.poll(64)[0]:
            pass

    def fill(self, offset, length, start):
        """Write the pattern from its byte `start` on, as often as it takes, into memory."""
        period = len(self.pattern)
        start %= period
        repeated = self.pattern * ((start + length) // period + 1)
        self.memory.write(repeated[start : start + length], length, offset)
        return {}

    def clear(self, offset, length):
        """Write zeros into memory."""
        self.memory.write(bytes(length), length, offset)
        return {}

    def digest(self, offset, length):
        """SHA-256 of a piece of memory."""
        return {"sha256": hashlib.sha256(self.memory.read(length, offset)).hexdigest()}

    def post_receive(self, offset, length, identity=0):
        """Post one receive."""
        entry = SGE(self.memory.buf + offset, length, self.memory.lkey)
        self.qp.post_recv(RecvWR(wr_id=identity, sg=[entry], num_sge=1))
        return {}

    def post(self, kind, offset, length, identity=0, address=0, key=0, immediate=0):
        """Post one request."""
        entry = SGE(self.memory.buf + offset, length, self.memory.lkey)
        request = SendWR(
            wr_id=identity,
            opcode=OPCODES[kind],
            num_sge=1,
            sg=[entry],
            send_flags=IBV_SEND_SIGNALED,
            imm_data=socket.htonl(immediate),
        )
        if kind.startswith(("write", "read")):
            request.set_wr_rdma(key, address)
        self.qp.post_send(request)
        return {}

    def poll(self, count, timeout_s):
        """Up to `count` completions, waiting at most `timeout_s`."""
        end = time.monotonic() + timeout_s
        found = []
        while len(found) < count and time.monotonic() < end:
            polled, completions = self.completions.poll(16)
            if not polled:
                time.sleep(0.0005)
            found += [
                {
                    "identity": completion.wr_id,
                    "status": completion.status,
                    "length": completion.byte_len,
                    "immediate": socket.ntohl(completion.imm_data),
                }
                for completion in completions
            ]
        return {"completions": found}

    def counters(self):
        """The kernel's counters of the device, when it no longer shows those of a while ago."""
        lifespan_ms = int((COUNTERS / "lifespan").read_text())
        time.sleep(2 * lifespan_ms / 1000)
        return guest_console.counters(COUNTERS)


if __name__ == "__main__":
    guest_console.serve(Agent())
