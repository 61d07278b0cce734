//! What becomes of frames at the end of their link.
//!
//! A medium is wrapped to change or to watch what passes; nothing about that is known to nodes.

use super::capture::{Capture, Captured};
use super::impairment::{Impaired, ImpairmentCounters};
use super::nic::DeviceRequest;
use crate::config::{JobConfig, NodeId};
use crate::roce::{Frame, Payload, decode, encode};

/// What becomes of frames that travel a link.
pub trait Medium {
    /// It takes frames when their transmission begins, and gives none back: it needs time.
    #[inline]
    fn takes_ahead(&self) -> bool {
        false
    }

    /// The last bit of the frame arrives by `direction` at `at_ps`, which is now unless it is taken
    /// ahead: return the frame to hand it to the node there.
    fn carry(&mut self, at_ps: u64, direction: u32, frame: Frame) -> Option<Frame>;

    /// A NIC that is an adapter's has a message for it.
    fn post(&mut self, _nic: u32, _request: DeviceRequest) {
        debug_assert!(false, "no adapter");
    }

    /// Frames that came by `direction` and whose invariant CRC did not fit.
    fn icrc_errors(&self, direction: u32) -> u64;

    /// A time at which [`Medium::release`] is to be called, each once, and the direction for which;
    /// call until `None` after every [`Medium::carry`].
    #[inline]
    fn poll_release(&mut self) -> Option<(u64, u32)> {
        None
    }

    /// A frame that was held back and arrives now, with its direction.
    fn release(&mut self, _now_ps: u64) -> Option<(u32, Frame)> {
        None
    }

    /// Take out a frame of `direction` that is held back, as it is lost; call until `None`.
    fn discard(&mut self, _direction: u32) -> Option<Frame> {
        None
    }

    /// What was done to frames on purpose, by direction; only directions that carried some.
    fn impairments(&self) -> Vec<(u32, ImpairmentCounters)> {
        Vec::new()
    }

    /// What was kept of frames.
    fn capture(&self) -> Option<&Capture> {
        None
    }
}

/// A medium with everything around it that a job may ask for.
pub type Wrapped<M> = Impaired<Captured<M>>;

/// Put around a medium what the job asks for.
pub fn wrap<M: Medium>(config: &JobConfig, medium: M) -> Wrapped<M> {
    Impaired::new(config, Captured::new(config, medium))
}

/// Both ends of every link are in this process.
#[derive(Clone, Debug)]
pub struct Internal {
    /// By direction: it ends at a NIC.
    reaches_nic: Vec<bool>,
    icrc_errors: Vec<u64>,
    bytes: Vec<u8>,
}

impl Internal {
    /// The medium of a whole job.
    pub fn new(config: &JobConfig) -> Self {
        let ends = config.links.iter().flat_map(|link| [link.b, link.a]);
        let reaches_nic: Vec<bool> = ends.map(|end| matches!(end.node, NodeId::Nic(_))).collect();
        Self { icrc_errors: vec![0; reaches_nic.len()], reaches_nic, bytes: Vec::new() }
    }

    /// A NIC reads bytes that came as bytes, and refuses those whose invariant CRC does not fit.
    #[cold]
    fn read(&mut self, direction: u32, frame: &Frame) -> Option<Frame> {
        self.bytes.clear();
        encode(frame, [0; 6], [0; 6], &mut self.bytes);
        let read = decode(&self.bytes).ok();
        self.icrc_errors[direction as usize] += u64::from(read.is_none());
        read
    }
}

impl Medium for Internal {
    #[inline]
    fn carry(&mut self, _now_ps: u64, direction: u32, frame: Frame) -> Option<Frame> {
        match &frame {
            Frame::Roce(packet)
                if matches!(packet.payload, Payload::Forwarded { .. })
                    && self.reaches_nic[direction as usize] =>
            {
                self.read(direction, &frame)
            }
            _ => Some(frame),
        }
    }

    fn icrc_errors(&self, direction: u32) -> u64 {
        self.icrc_errors[direction as usize]
    }
}
