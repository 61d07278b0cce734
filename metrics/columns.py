"""Every column of the record tables, once: name, unit, meaning. Tests check it against the writer.

Times are ns of emulated time since the start of the job; sizes are bytes.
"""

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["TABLE_COLUMNS", "Column"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table."""

    name: str
    unit: str
    meaning: str


def _columns(text: str) -> tuple[Column, ...]:
    """Columns from lines of `name | unit | meaning`."""
    lines = (line.split("|") for line in text.strip().splitlines())
    return tuple(Column(*(part.strip() for part in line)) for line in lines)


TABLE_COLUMNS: Mapping[str, tuple[Column, ...]] = {
    "collectives": _columns("""
        instance | | number of the collective in the run; one row each
        iteration | | repetition of the trace
        kind | | all_reduce, reduce_scatter, all_gather, all_to_all, broadcast, ..., send_recv
        group | | process group
        ranks | ranks | size of the group
        algorithm | | how it was expanded into messages
        size_bytes | bytes | S as in nccl-tests: the whole array, after scaling
        traced_size_bytes | bytes | what the trace says
        label | | name in the trace
        traffic_class | | class of its data packets
        complete | | every operation on every rank is complete; if not, the end is null
        start_ns | ns | first start over all ranks
        last_start_ns | ns | last start over all ranks
        end_ns | ns | last end over all ranks
        completion_time_ns | ns | end less first start
        completion_time_after_last_arrival_ns | ns | end less last start
        straggler_rank | | the rank that started last
        last_rank | | the rank that ended last
        busbw_factor | ratio | factor of nccl-tests from algbw to busbw
        serial_steps | messages | messages that must follow one another; 1 where slices overlap
        path_latency_ns | ns | mean one-way latency of its messages; null on a real network
        ideal_ns | ns | S x factor (all-to-all: bytes of the busiest rank) / goodput + latencies
        ideal_ratio | ratio | ideal time / completion time
        algbw_GBps | 10^9 B/s | S / completion time
        busbw_GBps | 10^9 B/s | algbw x factor
        bytes_sent | bytes | sum of its completed sends
        bytes_received | bytes | sum of its completed receives
        bytes_expected | bytes | sum of all its sends
        retransmitted_packets | packets | data packets sent again
        marked_packets | packets | data packets that arrived CE
        cnps | packets | congestion notifications received for its messages
    """),
    "flows": _columns("""
        instance | | collective that the message belongs to
        source_rank | | sender
        destination_rank | | receiver
        size_bytes | bytes | payload
        start_ns | ns | posted
        end_ns | ns | last byte acknowledged; null if it wasn't
        arrival_ns | ns | received whole, and the receiver's operation complete
        path_latency_ns | ns | one-way latency beyond the transmission; null on a real network
        ideal_ns | ns | bytes on the link / slower NIC's rate + path latency + way back of the ACK
        retransmitted_packets | packets | data packets sent again
        marked_packets | packets | data packets that arrived CE
        cnps | packets | congestion notifications received while it was being sent
        completion_time_ns | ns | end less start
        slowdown | ratio | completion time / ideal time
        iteration | | repetition of the trace
    """),
    "links": _columns("""
        time_ns | ns | end of the sample
        interval_ns | ns | length of the sample
        link | | name
        direction | | 0 from the first end, 1 from the second
        source | | sending end: NIC, or switch:port
        destination | | receiving end
        rate_bps | bits/s | line rate
        tx_bytes | bytes | frames sent, FCS included
        tx_packets | packets | frames sent
        data_bytes | bytes | RoCE payload sent
        busy_ns | ns | time that frames, preambles and gaps occupied the line
        paused_ns | ns | time in which PFC paused the data priority, the most paused of several
        utilisation_ratio | ratio | busy time / interval
    """),
    "queues": _columns("""
        time_ns | ns | end of the sample
        interval_ns | ns | length of the sample
        node | | switch or NIC
        is_switch | | it is a switch
        port | | port whose egress queue it is
        link | | link at that port
        priority | | 0 to 7
        depth_bytes | bytes | depth at the end of the sample
        max_depth_bytes | bytes | largest depth in the sample
        tx_packets | packets | frames of the priority sent
        tx_bytes | bytes | their bytes, FCS included
        utilisation_ratio | ratio | time of these frames with preambles and gaps / interval
        paused_ns | ns | time in which PFC paused the priority
        marked_packets | packets | packets marked CE
        dropped_packets | packets | packets dropped
        dropped_bytes | bytes | bytes dropped
        wred_dropped_packets | packets | those of them dropped for not being ECN-capable
        pause_frames_sent | frames | pause frames sent by the port, resumptions included
        pause_frames_received | frames | pause frames received, resumptions included
    """),
    "qps": _columns("""
        time_ns | ns | instant of the sample
        source_rank | | sender
        destination_rank | | receiver
        qp | | queue pair number of the sender
        traffic_class | | class of its data packets: 0 is data, then the further ones
        current_rate_bps | bits/s | R_C
        target_rate_bps | bits/s | R_T
        alpha | ratio | congestion estimate, 0 to 1
    """),
    "flow_links": _columns("""
        source_rank | | sender; null for pause frames, which belong to no flow
        destination_rank | | receiver
        source_port | | UDP source port: with the two ranks' addresses what ECMP hashes
        link | | name
        direction | | 0 from the first end, 1 from the second
        source | | sending end: NIC, or switch:port
        destination | | receiving end
        tx_packets | packets | frames of the flow sent
        tx_bytes | bytes | their bytes, FCS included
        data_bytes | bytes | RoCE payload of them; 0 for acknowledgements and notifications
    """),
    "paths": _columns("""
        source_rank | | sender
        destination_rank | | receiver
        source_port | | UDP source port
        path | | number among the paths of the flow, the one with most packets first
        nodes | | names of the nodes from the sending NIC on
        links | | names of the links between them
        arrives | | ends at the receiver; if not, packets were lost or still under way
        tx_packets | packets | frames that took the path
        tx_bytes | bytes | their bytes, FCS included
        is_data | | the flow carries payload, not acknowledgements and notifications alone
        share_ratio | ratio | packets / packets of the flow that left the NIC
    """),
    "ecmp": _columns("""
        switch | | switch that chooses
        group | | number among the switch's sets of equal-cost ports
        port | | one of them
        link | | link at that port
        next_node | | node at its other end
        weight | | how often the port stands in the set; 0 if it is none of it
        decided_by | | hash, chance (packets or flowlets), or queue (the shortest)
        expected_flows | | flows that the hash sends here, acknowledgements included
        flows | | flows that came here
        expected_bytes | bytes | what should come here of what left the NICs: by the hash, or even
        tx_bytes | bytes | what came here, FCS included, pauses not
        even_share_ratio | ratio | weight / weights of the group
        expected_share_ratio | ratio | expected bytes / those of the group
        share_ratio | ratio | bytes / those of the group
        expected_max_over_mean | ratio | largest expected load per weight / mean of the group
        max_over_mean | ratio | largest load per weight / mean of the group
    """),
    "pauses": _columns("""
        pause | | number of the pause in the run
        begin_ns | ns | the ingress reached its threshold
        end_ns | ns | it was told to resume; null if it was paused at the end
        switch | | switch that asked for the pause
        port | | port of the ingress
        priority | | 0 to 7
        link | | link at that port
        paused | | who was paused: a NIC, or switch:port
        held_bytes | bytes | of the ingress, stored when the pause began
        max_held_bytes | bytes | most of the ingress stored until its end, headroom included
        cause_port | | port of the egress queue that held most of them
        cause_towards | | node at the other end of that port's link
        cause_bytes | bytes | of the ingress in that queue
        cause_depth_bytes | bytes | depth of that queue
        cause_waited_ns | ns | how long the queue's first frame had waited
        parent | | number of the pause that this one follows from; null if its cause is congested
    """),
    "adapters": _columns("""
        time_ns | ns | instant at which the counter was read
        nic | | NIC that an RDMA device carries
        counter | | the kernel's name of a counter of its device or port
        value | | how much it had grown since the device was opened, in the counter's own unit
    """),
    "timeline": _columns("""
        rank | | rank
        row | | row of the rank's trace; null if there is none
        name | | name in the trace
        lane | | CPU thread or GPU stream of a computation
        kind | | compute, or the kind of the collective
        start_ns | ns | start
        end_ns | ns | end; null if it didn't complete
        instance | | collective, null for a computation
    """),
}
"""Columns by table, in the order of the files."""
