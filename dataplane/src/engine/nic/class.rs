//! One data class of a NIC: its priorities, and the order of its queue pairs.

use super::pacer::Pacer;
use super::port::NicPort;
use crate::config::ClassConfig;
use crate::roce::packet::Ecn;

/// A pause of its priority holds back all of its queue pairs and no others.
#[derive(Debug)]
pub struct Class {
    pub data_priority: u8,
    pub data_dscp: u8,
    pub data_ecn: Ecn,
    pub ack_priority: u8,
    pub pacer: Pacer,
}

impl Class {
    /// A class of a NIC that has so many queue pairs in all.
    pub fn new(tags: &ClassConfig, queue_pairs: usize) -> Self {
        Self {
            data_priority: tags.data_priority,
            data_dscp: tags.data_dscp,
            data_ecn: if tags.data_ecn_capable { Ecn::Ect0 } else { Ecn::NotEct },
            ack_priority: tags.ack_priority,
            pacer: Pacer::new(queue_pairs),
        }
    }

    /// When the next data packet may be sent; `None` if there is none.
    #[inline]
    pub fn next_ps(&self, port: &NicPort) -> Option<u64> {
        let at_ps = self.pacer.next_ps().filter(|_| !port.is_down())?;
        Some(at_ps.max(port.open_ps(self.data_priority)))
    }
}
