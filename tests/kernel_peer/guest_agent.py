"""Runs in the guest: one RC queue pair on rdma_rxe, driven by JSON lines on the serial console.

Every answer is one line `@@ {...}`. Standard library and pyverbs only.
"""

import hashlib
import json
import os
import sys
import time

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
MTU_CODES = {256: 1, 512: 2, 1024: 3, 2048: 4, 4096: 5}
COUNTERS = "/sys/class/infiniband/rxe0/ports/1/hw_counters"


def pattern(seed, length):
    """`length` bytes that follow from `seed`, the same on both sides."""
    return hashlib.shake_128(str(seed).encode()).digest(length)


class Agent:
    """The queue pair and its memory."""

    def open(self, peer_gid, peer_qp, mtu_bytes, local_psn, peer_psn, buffer_bytes, timeout=14):
        """Bring one queue pair to ready-to-send."""
        context = Context(name="rxe0")
        access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ
        self.domain = PD(context)
        self.completions = CQ(context, 1024)
        self.memory = MR(self.domain, buffer_bytes, access)
        capability = QPCap(max_send_wr=512, max_recv_wr=512, max_send_sge=1, max_recv_sge=1)
        wanted = QPInitAttr(
            qp_type=IBV_QPT_RC, scq=self.completions, rcq=self.completions, cap=capability
        )
        self.qp = QP(self.domain, wanted)
        self.qp.to_init(self._initial(access))
        attributes = QPAttr(port_num=1)
        attributes.dest_qp_num = peer_qp
        attributes.rq_psn = peer_psn
        attributes.path_mtu = MTU_CODES[mtu_bytes]
        attributes.max_dest_rd_atomic = 4
        attributes.min_rnr_timer = 12
        route = GlobalRoute(dgid=GID(peer_gid), sgid_index=1, hop_limit=64, traffic_class=106)
        attributes.ah_attr = AHAttr(gr=route, is_global=1, port_num=1)
        attributes.sq_psn = local_psn
        attributes.timeout = timeout
        attributes.retry_cnt = 7
        attributes.rnr_retry = 7
        attributes.max_rd_atomic = 4
        self.qp.to_rts(attributes)
        return {"qp": self.qp.qp_num, "key": self.memory.rkey, "address": self.memory.buf}

    @staticmethod
    def _initial(access):
        attributes = QPAttr(port_num=1)
        attributes.qp_access_flags = access
        return attributes

    def fill(self, seed, offset, length):
        """Write the pattern of `seed` into memory."""
        self.memory.write(pattern(seed, length), length, offset)
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
            imm_data=immediate,
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
            _, completions = self.completions.poll(16)
            found += [
                {
                    "identity": completion.wr_id,
                    "status": completion.status,
                    "opcode": completion.opcode,
                    "length": completion.byte_len,
                    "immediate": completion.imm_data,
                }
                for completion in completions
            ]
        return {"completions": found}

    def counters(self):
        """The kernel's hardware counters of the device."""
        names = os.listdir(COUNTERS)
        return {
            name: int(open(f"{COUNTERS}/{name}").read()) for name in names if name != "lifespan"
        }


def main():
    """Answer one line for each line."""
    agent = Agent()
    print("@@ " + json.dumps({"ready": os.uname().release}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        operation = request.pop("operation")
        if operation == "quit":
            return
        try:
            answer = getattr(agent, operation)(**request)
        except Exception as error:  # the host must learn of anything that goes wrong here
            answer = {"error": f"{type(error).__name__}: {error}"}
        print("@@ " + json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
