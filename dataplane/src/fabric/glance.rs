//! Glances at what a packet will need of a switch: numbers of no meaning, read from where handling it
//! will read, so that the processor fetches that before it is needed.

use super::buffer::Passage;
use super::switch::Switch;
use super::switch_port::Port;
use crate::roce::Packet;

impl Switch {
    /// How a packet that comes in at a port will pass, if that depends on its flow alone and nothing
    /// has failed.
    #[inline]
    pub(crate) fn expected_passage(&self, ingress_port: u16, packet: &Packet) -> Option<Passage> {
        let choices = self.routes.towards(packet.destination_address);
        let egress_port = match choices.ports {
            [] => None,
            [port] => Some(*port),
            _ => self.paths.expected(packet.flow(), choices),
        }?;
        let priority = self.priority_of_dscp[usize::from(packet.dscp & 63)];
        Some(Passage { ingress_port, egress_port, priority })
    }

    /// A glance at what a port needs to send a frame.
    #[inline]
    pub(crate) fn glance_at_port(&self, port: u16) -> u64 {
        self.ports.get(usize::from(port)).map_or(0, Port::glance)
    }

    /// A glance at what a packet needs to be stored, queued and sent.
    #[inline]
    pub(crate) fn glance_at_passage(&self, passage: Passage) -> u64 {
        let queue = self.ports[usize::from(passage.egress_port)].glance_at(passage.priority);
        queue ^ self.buffer.glance(passage) ^ self.pauses.glance(passage)
    }
}
