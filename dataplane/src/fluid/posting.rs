//! From a message or a receiver's readiness to the flow that carries it.

use super::emulation::{Emulation, Event, NONE};
use super::message::{Framing, Message};
use super::queue_pair::{QueuePair, Sent, limit_bps};
use super::route::Route;
use crate::config::QpDistribution;
use crate::engine::nic::CLEAR_TO_SEND_BYTES;
use crate::engine::nic::striping::stripes;
use crate::roce::udp_source_port;

impl Emulation {
    /// Put a message on the queue pairs that the NIC of the packet engine would take.
    pub(super) fn post(&mut self, nic: u32, peer: u32, message: Message) {
        let distribution = self.config.transport.qp_distribution;
        let Some(rank) = &mut self.ranks[nic as usize] else { return };
        let program = rank.executor.program();
        let (channel, class) = (program.channel_of(message.op), program.class_of(message.op));
        let is_striped = rank.striping.is_on();
        let Some(peer) = rank.peers.get_mut(&(peer, class)) else { return };
        if is_striped {
            let pairs = peer.pairs().zip(stripes(message.size_bytes, peer.count));
            for (connection, size_bytes) in pairs.collect::<Vec<_>>() {
                self.enqueue(connection, Message { size_bytes, ..message });
            }
        } else {
            let connection = match distribution {
                QpDistribution::Channel => peer.of_channel(channel),
                QpDistribution::RoundRobin | QpDistribution::Split => peer.take_turn(),
            };
            self.enqueue(connection, message);
        }
    }

    fn enqueue(&mut self, connection: u32, message: Message) {
        // Without a way there the message never leaves, and the job stalls.
        let Some(flow) = self.flow(connection) else { return };
        let pair = &mut self.flows[flow as usize];
        pair.messages.push_back(message);
        if pair.messages.len() == 1 {
            self.activate(flow, message.size_bytes);
        } else if pair.outage.is_some() {
            self.break_silence(flow, message.size_bytes);
        }
    }

    /// A receiver's readiness goes the way of acknowledgements and takes no bandwidth.
    pub(super) fn clear(&mut self, nic: u32, (peer, class): (u32, u8), peer_op: u32) {
        let own_rank = self.config.nics[nic as usize].rank;
        let Some(&peer_nic) = self.topology.nic_of_rank.get(&peer) else { return };
        let connection = self.ranks[peer_nic as usize].as_ref().and_then(|sender| {
            let pairs = sender.peers.get(&(own_rank, class))?;
            Some(pairs.first)
        });
        let Some(flow) = connection.and_then(|connection| self.flow(connection)) else { return };
        let framing = Framing::new(CLEAR_TO_SEND_BYTES, self.config.transport.mtu_bytes);
        let back_ps = self.flows[flow as usize].back.whole_ps(framing.line_bytes);
        self.events.push(self.now_ps + back_ps, Event::Cleared { nic: peer_nic, op: peer_op });
        if let Some(rank) = &mut self.ranks[nic as usize] {
            rank.totals.clear_to_send_sent += 1;
        }
    }

    /// The flow of a connection, made when it is first asked for.
    fn flow(&mut self, connection: u32) -> Option<u32> {
        let known = self.flow_of_connection[connection as usize];
        if known != NONE {
            return Some(known);
        }
        let planned = self.connections[connection as usize];
        let nic = |rank| self.topology.nic_of_rank.get(&rank).copied();
        let ends = (nic(planned.source_rank)?, nic(planned.destination_rank)?);
        let port = udp_source_port(planned.source_qp, planned.destination_qp);
        let (forward, back) = self.ways((ends, port))?;
        let limit_bps = limit_bps(&self.config, planned.class, &forward.latency, &back.latency);
        let flow = self.sharing.add_flow(&forward.hops, limit_bps);
        let mut pair = QueuePair::new((ends, port), planned.class, (&forward, &back));
        pair.cut = self.cut(&forward, &back);
        self.flows.push(pair);
        self.flow_of_connection[connection as usize] = flow;
        Some(flow)
    }

    /// The ways there and back of a queue pair between two NICs, with its source port.
    pub(super) fn ways(&self, (ends, port): ((u32, u32), u16)) -> Option<(Route, Route)> {
        let address = |nic: u32| u32::from(self.config.nics[nic as usize].address);
        let (here, there) = (address(ends.0), address(ends.1));
        let route = |ends, flow| self.router.route(&self.config, &self.topology, ends, flow);
        let forward = route(ends, (here, there, port))?;
        let back = route((ends.1, ends.0), (there, here, port))?;
        Some((forward, back))
    }
}

/// All of a message.
pub(super) fn whole(framing: &Framing, size_bytes: u64) -> Sent {
    Sent { packets: framing.packets, frame_bytes: framing.frame_bytes(), payload_bytes: size_bytes }
}
